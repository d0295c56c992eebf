"""What a page shows of a pause, as values: made once by `card_for`, used by rows, cards and fragments alike.

Plain module. Every text from outside has been through `runs.visible.visible` before it gets here (R13), and is
escaped by the templates like any other (R15).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from approvals.change_values import Renewal, Shown
from runs.risk import Risk
from runs.visible import UrlView


@dataclass(frozen=True, kw_only=True)
class RiskTag:
    """Risk as a word with an icon of the same name; never colour alone (R47)."""

    word: str
    icon: str
    describe: str

    @classmethod
    def of(cls, risk: Risk) -> Self:
        return cls(word=risk.word, icon=risk.value, describe=risk.describe)


@dataclass(frozen=True, kw_only=True)
class State:
    """How far a pause has come, in the words of R4; `css` is the tone of its tag."""

    word: str
    sentence: str
    icon: str
    css: str


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One argument, complete (R11).

    `block` asks for a scrollable block, `hidden` says that characters had to be written out, `was` is the value of
    the last allowed call where it differs, `new` that this call is the first to carry the argument.
    """

    name: str
    text: str
    block: bool = False
    hidden: bool = False
    was: str | None = None
    new: bool = False

    @property
    def marked(self) -> bool:
        return self.new or self.was is not None


@dataclass(frozen=True, kw_only=True)
class Arguments:
    """All arguments of a call, flattened by one level, and the same as canonical JSON.

    `compared` is whether there was an earlier call; `gone` are arguments that it had and this one has not.
    """

    rows: tuple[Argument, ...]
    raw: str
    compared: bool = False
    gone: tuple[Argument, ...] = ()

    @property
    def hidden_names(self) -> tuple[str, ...]:
        return tuple(row.name for row in self.rows if row.hidden)


@dataclass(frozen=True, kw_only=True)
class PastDenial:
    """A call that a person denied and a rule would allow: where it is to be seen, and who denied it."""

    run_id: int
    round_id: str | None
    who: str


@dataclass(frozen=True, kw_only=True)
class RememberChoice:
    """One way to remember an allow: what is posted (`user:30`), its label, and the exact rule that it saves (R23).

    `shown` is the digest of this preview; it is posted too, so that nothing else is saved. `replay` says what the rule
    would have done, `risks` and `denials` (with how many `more_denials` are not listed) what has to be confirmed.
    `exactly`: for these arguments only.
    """

    value: str
    label: str
    rule: str
    shown: str = ""
    exactly: bool = False
    replay: str = ""
    risks: tuple[str, ...] = ()
    denials: tuple[PastDenial, ...] = ()
    more_denials: int = 0

    @property
    def to_confirm(self) -> bool:
        return bool(self.risks or self.denials)


@dataclass(frozen=True, kw_only=True)
class Option:
    """An option of a question; it posts its index, so that labels may be anything."""

    index: int
    label: str
    description: str = ""
    chosen: bool = False


@dataclass(frozen=True, kw_only=True)
class Question:
    """One question of the agent. `number` names its inputs; no text from outside ever does (R15)."""

    number: int
    key: str
    header: str
    text: str
    multiple: bool
    options: tuple[Option, ...]
    other: str = ""

    @property
    def anchor(self) -> str:
        """The element that the error summary leads to: the first thing to answer with."""
        return f"{self.key}-first"

    @property
    def other_id(self) -> str:
        return f"{self.key}-other" if self.options else self.anchor


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One keyed request of a server.

    `draft` is the action that is saved for it, or was sent once the pause is over; `given` is the content that goes
    or went with it; `may_open` is whether there may be a link to `url`: while it is asked, and after consent.
    """

    number: int
    key: str
    mode: str
    message: str
    url: UrlView | None = None
    draft: str | None = None
    given: Arguments | None = None
    may_open: bool = False


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a pause ended: "Allowed" by "bob" at a time, because of `reason`.

    `note` is what the agent was told, `remembered` the rule that was stored with the decision (R29).
    """

    word: str
    who: str
    at: datetime
    reason: str = ""
    note: str = ""
    remembered: str = ""


@dataclass(frozen=True, kw_only=True)
class Happening:
    """One line of a card's history."""

    at: datetime
    who: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """A pause in the list."""

    id: str
    kind: str
    version: int
    icon: str
    tone: str
    tone_word: str
    headline: str
    sub: str
    created_at: datetime
    deadline: datetime | None
    """When it ends if nobody answers: fails, or, for a question with a recommendation, goes on."""
    age: str
    left: str | None
    urgent: bool


@dataclass(frozen=True, kw_only=True)
class Card:
    """A pause in full, in the reading order of the page."""

    row: Row
    tag: str
    risk: RiskTag | None
    state: State
    pending: bool
    controls: bool
    """Whether this person may decide, and there is still something to decide."""
    damaged: bool = False
    """Whether the row cannot be read: the card says so and offers nothing but the way to its run (C46)."""
    agent: str
    end_user: str | None
    run_id: int
    step: int | None
    asked_by: str
    tool: str
    server: str
    server_address: str
    mode: str
    why: str
    digest: str
    description: str = ""
    message: str = ""
    arguments: Arguments | None = None
    edited: Arguments | None = None
    remember: tuple[RememberChoice, ...] = ()
    """Every call of the tool first, then those with exactly these arguments; each narrowest first."""
    strict: bool = False
    questions: tuple[Question, ...] = ()
    goes_on: str = ""
    """The recommended answers with which the run goes on when time is up; "" if it does not."""
    asked: tuple[Asked, ...] = ()
    plan: str = ""
    revision: int = 0
    feedback: str = ""
    then: tuple[tuple[str, str], ...] = ()
    """Modes in which the run may go on with an approved plan, each with what it means."""
    changed: Shown | None = None
    """What has changed since the turn began or the rule was made, where that is why it asks (R28)."""
    renewal: Renewal | None = None
    stale: bool = False
    """Whether server, definition or risk are others by now than this card shows."""
    ending: Ending | None = None
    history: tuple[Happening, ...] = ()

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def kind(self) -> str:
        return self.row.kind

    @property
    def headline(self) -> str:
        return self.row.headline

    @property
    def remember_all(self) -> tuple[RememberChoice, ...]:
        return tuple(choice for choice in self.remember if not choice.exactly)

    @property
    def remember_exactly(self) -> tuple[RememberChoice, ...]:
        return tuple(choice for choice in self.remember if choice.exactly)

    @property
    def exactly_values(self) -> tuple[str, ...]:
        return tuple(choice.value for choice in self.remember_exactly)

    @property
    def remember_risks(self) -> tuple[str, ...]:
        """They are those of the tool, and the same for every way to remember it."""
        return self.remember[0].risks if self.remember else ()

    @property
    def remember_to_confirm(self) -> bool:
        """Whether some way to remember needs the tick."""
        return any(choice.to_confirm for choice in self.remember)

    @property
    def next_request(self) -> int | None:
        """The first request that has no answer yet."""
        return next((request.number for request in self.asked if request.draft is None), None)

    @property
    def answered(self) -> int:
        """Requests of a many-key round that have a saved answer."""
        return sum(request.draft is not None for request in self.asked)
