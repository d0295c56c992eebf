"""What a message, a mode and a selection must be, wherever a run or a reply is asked for."""

from __future__ import annotations

from collections.abc import Sequence

from runs.errors import ModelValidationError
from runs.run_states import HumanInput, PermissionMode

MAX_MESSAGE = 20_000
"""Characters of a message that opens a turn."""


def checked_message(message: str) -> str:
    """The message as it is stored, without the white space around it."""
    text = message.strip()
    if not text or len(text) > MAX_MESSAGE:
        raise ModelValidationError(
            f"A message has between 1 and {MAX_MESSAGE:,} characters; this one has {len(text):,}."
        )
    return text


def mode_of(word: str) -> PermissionMode:
    try:
        return PermissionMode(word)
    except ValueError as error:
        raise ModelValidationError("permission_mode is one of autonomous, approval, plan.") from error


def resolve_human_input(mode: PermissionMode, asked: HumanInput | None) -> HumanInput:
    """Approval and plan need people: omitted means managed, an explicit fail is refused (m8tes-http 4.4)."""
    if mode is PermissionMode.AUTONOMOUS:
        return asked or HumanInput.FAIL
    if asked is HumanInput.FAIL:
        raise ModelValidationError(f"The mode {mode} asks people; human_in_the_loop cannot be false with it.")
    return HumanInput.MANAGED


def checked_tools(tools: Sequence[str] | None) -> list[str] | None:
    if tools is None:
        return None
    if len(set(tools)) != len(tools):
        raise ModelValidationError("The tool selection names a tool twice. Name each once.")
    return list(tools)
