"""Calls on a managed-input store as JSON, the same for the reference and for ours: no difference comes from here.

Runs in the reference's environment and in our own, so it knows only the standard library; the types are passed in.

A call is {"call": name, "args": {...}}; an answer is {"ok": value} or {"error": class name, "code": its stable code}.
Besides the store's methods there are `open` (a new, empty store, its clock at the given time), `set_clock`, and
`value` (only construct a value). Among the arguments, `pending` is a mapping of its fields, and a value of `responses`
is {"ElicitationResponse": {...}} for a value of that type; anything else is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

METHODS = frozenset(
    {
        "create_round",
        "get_round",
        "list_rounds",
        "claim_round",
        "renew",
        "submit_responses",
        "start_delivery",
        "mark_delivered",
        "resolve",
        "fail",
        "fail_recovery",
        "redacted_responses",
    }
)


class Calls:
    """Answers calls. `types` are the value types by name; `new_store` makes a store that uses the clock it is given."""

    def __init__(
        self, types: Mapping[str, Callable[..., Any]], new_store: Callable[[Callable[[], datetime]], Any]
    ) -> None:
        self.types = types
        self.new_store = new_store

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one call; an exception of any kind is an answer too."""
        try:
            return {"ok": self._call(request["call"], request["args"])}
        except Exception as error:
            return {"error": type(error).__name__, "code": getattr(error, "code", None)}

    def _call(self, name: str, args: dict[str, Any]) -> Any:
        if name in METHODS:
            return plain(getattr(self.store, name)(**self._typed(args)))
        return {"open": self._open, "set_clock": self._set_clock, "value": self._value}[name](**args)

    def _open(self, now: str) -> None:
        self._set_clock(now)
        self.store = self.new_store(lambda: self.now)

    def _set_clock(self, now: str) -> None:
        self.now = datetime.fromisoformat(now)

    def _value(self, kind: str, fields: dict[str, Any]) -> Any:
        return plain(self.types[kind](**fields))

    def _typed(self, args: dict[str, Any]) -> dict[str, Any]:
        """The arguments with values of the store's own types in the places that have one."""
        args = dict(args)
        if isinstance(args.get("pending"), dict):
            fields = dict(args["pending"])
            for name in ("created_at", "deadline"):
                if isinstance(fields.get(name), str):
                    fields[name] = datetime.fromisoformat(fields[name])
            fields["requests"] = {
                key: self.types[kind](**request)
                for key, wrapped in fields["requests"].items()
                for kind, request in wrapped.items()
            }
            args["pending"] = self.types["PendingElicitationRound"](**fields)
        if isinstance(args.get("responses"), dict):
            args["responses"] = {key: self._response(value) for key, value in args["responses"].items()}
        return args

    def _response(self, value: Any) -> Any:
        if isinstance(value, dict) and value.keys() == {"ElicitationResponse"}:
            return self.types["ElicitationResponse"](**value["ElicitationResponse"])
        return value


def plain(value: Any) -> Any:
    """A value or record as JSON: fields by name, moments in UTC."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    names = getattr(type(value), "model_fields", None) or type(value).__dataclass_fields__
    return {name: plain(getattr(value, name)) for name in names}
