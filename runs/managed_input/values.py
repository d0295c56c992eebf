"""What managed input is made of: requests, responses, the pending round, its lease and its record.

Plain module. Every value is frozen, refuses unknown fields, and keeps private copies of the JSON it is given: what a
caller changes later changes nothing here. A value that cannot be made raises pydantic's ValidationError, which is
a ValueError. Sources: C8-C10, C14, C16, C47.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from runs.canonical import canonical_json
from runs.round_states import RoundStatus as ManagedInputStatus

__all__ = [
    "ElicitationResponse",
    "FormElicitationRequest",
    "ManagedInputLease",
    "ManagedInputRecord",
    "ManagedInputStatus",
    "OperationKind",
    "PendingElicitationRound",
    "UrlElicitationRequest",
    "name",
    "plain_json",
]


def plain_json(value: Any) -> Any:
    """A copy of `value` made of dict, list, str, int, float, bool and None; keys keep their order.

    Raises NotJson (a ValueError) for what JSON does not have, NaN and infinities included.
    """
    canonical_json(value)  # bounds the depth too, so that the copying below cannot run away
    return _copied(value)


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {_copied(key): _copied(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(inner) for inner in value]
    return value


def name(value: str) -> str:
    """A text that is looked up by: not empty, and without the characters that no database column holds."""
    canonical_json(value)
    if not value or "\0" in value:
        raise ValueError("Must be a text that is not empty, without NUL characters.")
    return value


def storable(value: datetime) -> datetime:
    """A moment that has a date in UTC too, as which it is stored; at both ends of the calendar some have none."""
    try:
        value.astimezone(UTC)
    except OverflowError:
        raise ValueError("Must be within the years 1 to 9999 in UTC.") from None
    return value


Moment = Annotated[AwareDatetime, AfterValidator(storable)]
Text = Annotated[str, AfterValidator(plain_json)]
Name = Annotated[str, AfterValidator(name)]
JsonObject = Annotated[Mapping[str, Any], AfterValidator(plain_json)]
OperationKind = Literal["tool", "prompt", "resource"]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Request(_Value):
    """What both kinds of request have; the optional part says what it is about."""

    request_key: Name
    message: Text
    meta: JsonObject | None = None
    task: JsonObject | None = None
    server: Text | None = None
    operation_kind: OperationKind | None = None
    operation_name: Text | None = None


class FormElicitationRequest(_Request):
    """A form to fill in, described by a JSON Schema."""

    mode: Literal["form"] = "form"
    requested_schema: JsonObject


class UrlElicitationRequest(_Request):
    """A page to open; agreeing to it is consent and nothing more (C17)."""

    mode: Literal["url"] = "url"
    url: Text
    elicitation_id: Text | None = None


class ElicitationResponse(_Value):
    """The answer to one request. Only an accepted form carries content (C15-C17)."""

    action: Literal["accept", "decline", "cancel"]
    content: JsonObject | None = None
    meta: JsonObject | None = None

    @model_validator(mode="after")
    def _content_goes_with_accept(self) -> Self:
        if self.action != "accept" and self.content is not None:
            raise ValueError(f"A {self.action} carries no content, not even an empty one.")
        return self


class PendingElicitationRound(_Value):
    """A pause as whoever answers it sees it: never an owner, a lease or a token (C8).

    `request_state` belongs to the server and is kept as it is; an empty text is not the same as none. Times have
    a time zone.
    """

    round_id: Name
    execution_id: Name
    logical_operation_id: Name
    server: Name
    operation_kind: OperationKind
    operation_name: Name
    request_state: Text | None = None
    requests: Mapping[
        str, Annotated[FormElicitationRequest | UrlElicitationRequest, Field(discriminator="mode")]
    ]
    created_at: Moment
    deadline: Moment | None = None

    @model_validator(mode="after")
    def _every_request_under_its_own_key(self) -> Self:
        if not self.requests:
            raise ValueError("A round asks for at least one thing.")
        for key, request in self.requests.items():
            if key != request.request_key:
                raise ValueError(f"The request under {key!r} calls itself {request.request_key!r}.")
        return self


class ManagedInputLease(_Value):
    """Who may change a round until when; each change names both owner and token (C28)."""

    owner_id: Name
    lease_token: Name
    expires_at: AwareDatetime


class ManagedInputRecord(_Value):
    """A round with everything that its workers know of it."""

    pending: PendingElicitationRound
    round_index: Annotated[int, Field(ge=0)]
    round_limit: Annotated[int, Field(gt=0)]
    status: ManagedInputStatus
    lease: ManagedInputLease
    responses: Mapping[str, ElicitationResponse] | None = None
    response_idempotency_key: str | None = None
    harness_session_id: str | None = None
    native_resume_token: str | None = None
    delivery_idempotency_key: str | None = None
    session_id: str | None = None
    turn_id: str | None = None
    operation_parameters: JsonObject = Field(default_factory=dict)
    delivery_attempts: Annotated[int, Field(ge=0)] = 0
    created_at: AwareDatetime
    updated_at: AwareDatetime
    response_validated_at: AwareDatetime | None = None
    delivery_started_at: AwareDatetime | None = None
    delivered_at: AwareDatetime | None = None
    resolved_at: AwareDatetime | None = None
    failed_at: AwareDatetime | None = None
    failure_code: str | None = None
    failure_message: str | None = None

    @model_validator(mode="after")
    def _index_below_limit(self) -> Self:
        if self.round_index >= self.round_limit:
            raise ValueError(f"Round {self.round_index} is beyond its limit of {self.round_limit}.")
        return self
