"""Arguments of a call as a table: complete, flattened by one level, with what changed and what hides (R11, R13).

Plain module.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from approvals.cards.values import Argument, Arguments
from runs.canonical import canonical_json
from runs.visible import has_hidden, visible

_LONG: Final = 160
"""Characters beyond which a value gets a block of its own that scrolls; it is complete all the same."""


def arguments_table(arguments: Mapping[str, Any], earlier: Mapping[str, Any] | None = None) -> Arguments:
    """The table for `arguments`, compared with those of the last allowed call (`earlier`, None for no comparison)."""
    now = _flat(arguments)
    before = _flat(earlier) if earlier is not None else {}
    rows = tuple(
        _row(path, value, before.get(path, _NOTHING), earlier is not None) for path, value in now.items()
    )
    gone = tuple(
        Argument(name=_name(path), text=shown(value)) for path, value in before.items() if path not in now
    )
    return Arguments(rows=rows, raw=visible(pretty(arguments)), compared=earlier is not None, gone=gone)


def pretty(value: Any) -> str:
    """JSON for reading. Values keep their exact form; only blanks and line ends differ from the canonical text."""
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)


def shown(value: Any) -> str:
    """A value as text. Text that could be taken for another type, or for nothing, is shown in quotes."""
    if not isinstance(value, str):
        return visible(canonical_json(value))
    return visible(canonical_json(value) if _ambiguous(value) else value)


class _Nothing:
    """Stands for "not there", which is not the same as null."""


_NOTHING: Final = _Nothing()
Path = tuple[str, ...]


def _flat(arguments: Mapping[str, Any]) -> dict[Path, Any]:
    flat: dict[Path, Any] = {}
    for key, value in arguments.items():
        if isinstance(value, Mapping) and value:
            flat.update({(key, inner): held for inner, held in value.items()})
        else:
            flat[(key,)] = value
    return flat


def _row(path: Path, value: Any, before: Any, compared: bool) -> Argument:
    text = shown(value)
    new = compared and before is _NOTHING
    # Canonical text, because 1 and 1.0 and True are equal in Python and not for a server.
    changed = compared and not new and canonical_json(value) != canonical_json(before)
    hidden = has_hidden(value if isinstance(value, str) else canonical_json(value)) or any(
        map(has_hidden, path)
    )
    return Argument(
        name=_name(path),
        text=text,
        block=len(text) > _LONG or "\n" in text,
        hidden=hidden,
        was=shown(before) if changed else None,
        new=new,
    )


def _name(path: Path) -> str:
    return " › ".join(visible(part) for part in path)


def _ambiguous(text: str) -> bool:
    if not text or (text != text.strip() and "\n" not in text):
        return True
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
