"""Why a decision of an m8tes client is not taken. Their codes are part of the contract (m8tes-http 4.1, 4.2)."""

from __future__ import annotations

from typing import ClassVar

from runs.errors import ModelValidationError, NotFound, StateConflict


class GateNotFound(NotFound):
    """The run has no such request."""

    code: ClassVar[str] = "gate_not_found"


class GateCancelled(NotFound):
    """The request was cancelled with its run, or its session was lost."""

    code: ClassVar[str] = "gate_cancelled"


class GateResolvedOtherwise(NotFound):
    """Somebody decided the opposite, and that is what counts."""

    code: ClassVar[str] = "gate_resolved_otherwise"


class RunNotActive(StateConflict):
    """The run ended, or the time was up, while the request was open."""

    code: ClassVar[str] = "run_not_active"


class NotAwaitingInput(StateConflict):
    """Nothing of the run waits for this answer."""

    code: ClassVar[str] = "not_awaiting_input"


class AutoContinued(StateConflict):
    """The question was answered by its recommendation; a reply redirects the run (m8tes-http 4.5)."""

    code: ClassVar[str] = "auto_continued"


class UseAnswer(ModelValidationError):
    """A question or a form is answered, not allowed."""

    code: ClassVar[str] = "use_answer"


class UseApprove(ModelValidationError):
    """A call or a link is allowed or denied, not answered."""

    code: ClassVar[str] = "use_approve"


class UnknownQuestion(ModelValidationError):
    """A key of the answers is the text of no question of this request."""

    code: ClassVar[str] = "unknown_question"
