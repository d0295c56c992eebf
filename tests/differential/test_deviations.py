"""Each difference from the reference, shown on purpose: (what the reference says, what ours says).

If one of these tests fails because the two agree by now, take the difference off the list.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

from tests.core.pages import rows, section
from tests.differential.both import Both
from tests.differential.deviations import DEVIATIONS
from tests.differential.rounds import HOLDER, bring_to, creation, form, page, response

CONFLICT, STATE = "ManagedInputConflict", "ManagedInputStateError"
INVALID, REFUSED_VALUE = "ManagedInputValidationError", "ValidationError"
TAKEN = "response_validated"
F = TypeVar("F", bound=Callable[..., None])
shown: set[str] = set()
Answers = tuple[str, str]


def shows(name: str) -> Callable[[F], F]:
    """This test shows the deviation of that name."""

    def keep(test: F) -> F:
        shown.add(name)
        return test

    return keep


class Scene:
    """Makes a call on both sides and says in one word each what came of it: a status or the class of an error."""

    def __init__(self, both: Both, executions: Callable[[], str]) -> None:
        self.both = both
        self.executions = executions

    def call(self, name: str, **arguments: Any) -> Answers:
        theirs, ours = self.both.answers(name, **arguments)
        assert theirs != ours
        return _word(theirs), _word(ours)

    def created(self, execution_id: str | None = None, round_id: str = "", **changes: Any) -> Answers:
        """A creation on which they differ, in an execution of its own if none is given."""
        execution = execution_id or self.executions()
        return self.call("create_round", **creation(execution, round_id or f"round-{execution}", **changes))

    def agreed(self, **changes: Any) -> dict[str, str]:
        """A creation on which they agree; where the round is."""
        execution = self.executions()
        at = {"execution_id": execution, "round_id": f"round-{execution}"}
        assert "ok" in self.both.call("create_round", **creation(**at, **changes))
        return at

    def answered(self, schema: dict[str, Any], content: dict[str, Any]) -> Answers:
        """An accepted form of this schema with this content."""
        at = self.agreed(requests={"address": form(schema=schema)})
        given = {"address": response(content=content)}
        return self.call(
            "submit_responses", **at, **HOLDER, responses=given, response_idempotency_key="key-1"
        )

    def field(self, schema: dict[str, Any], value: Any) -> Answers:
        """The same for a form with one field."""
        return self.answered({"type": "object", "properties": {"a": schema}}, {"a": value})


def _word(answer: dict[str, Any]) -> str:
    return str(answer.get("error") or answer["ok"]["status"])


@pytest.fixture
def scene(both: Both, executions: Callable[[], str]) -> Scene:
    return Scene(both, executions)


@shows("Index of a round")
def test_two_operations_of_an_execution_have_a_round_0_each(scene: Scene) -> None:
    at = scene.agreed(logical_operation_id="book")
    other = scene.created(at["execution_id"], f"other-{at['round_id']}", logical_operation_id="return")
    assert other == (CONFLICT, "pending")


@shows("Open rounds")
def test_an_operation_has_one_pending_round(scene: Scene) -> None:
    at = scene.agreed(round_index=0)
    second = scene.created(at["execution_id"], f"second-{at['round_id']}", round_index=1)
    assert second == ("pending", CONFLICT)


@shows("Round ids")
def test_a_round_id_is_used_once(scene: Scene) -> None:
    at = scene.agreed()
    assert scene.created(round_id=at["round_id"]) == ("pending", CONFLICT)


@shows("Unknown executions")
@pytest.mark.parametrize("execution", ["nothing", "11111111-1111-4111-8111-111111111111"])
def test_a_round_belongs_to_an_execution(scene: Scene, execution: str) -> None:
    assert scene.created(execution) == ("pending", CONFLICT)


@shows("Lost rounds")
def test_an_execution_ends_with_its_last_lost_round(scene: Scene) -> None:
    execution = scene.executions()
    bring_to(scene.both, "lost", execution, f"round-{execution}")
    assert scene.created(execution, f"next-{execution}", round_index=1) == ("pending", STATE)


@shows("Length of a lease")
@pytest.mark.parametrize(
    ("seconds", "error"),
    [(float("nan"), "ValueError"), (float("inf"), "OverflowError"), (1e12, "OverflowError")],
)
def test_a_lease_has_a_length(scene: Scene, seconds: float, error: str) -> None:
    assert scene.created(lease_seconds=seconds) == (error, INVALID)


@shows("Operation parameters")
@pytest.mark.parametrize(
    ("parameters", "theirs"),
    [([1], "TypeError"), ("x", "ValueError"), (5, "TypeError"), ([["a", 1]], "pending"), ([], "pending")],
)
def test_operation_parameters_are_a_mapping(scene: Scene, parameters: Any, theirs: str) -> None:
    assert scene.created(operation_parameters=parameters) == (theirs, INVALID)


@shows("Repeats with lists")
def test_a_creation_with_a_list_may_be_repeated(scene: Scene) -> None:
    at = scene.agreed(operation_parameters={"a": [1]})
    assert scene.created(**at, operation_parameters={"a": [1]}) == (CONFLICT, "pending")


@shows("Repeats with other numbers")
def test_a_creation_with_another_number_is_another(scene: Scene) -> None:
    at = scene.agreed(operation_parameters={"a": 1})
    assert scene.created(**at, operation_parameters={"a": 1.0}) == ("pending", CONFLICT)


@shows("Repeats in another time zone")
def test_a_creation_may_be_repeated_from_another_time_zone(scene: Scene) -> None:
    at = scene.agreed(created_at="2026-01-01T00:00:00+00:00")
    assert scene.created(**at, created_at="2026-01-01T05:00:00+05:00") == (CONFLICT, "pending")


@shows("Times without a zone")
@pytest.mark.parametrize("name", ["created_at", "deadline"])
def test_times_have_a_zone(scene: Scene, name: str) -> None:
    assert scene.created(**{name: "2026-01-01T00:00:00"}) == ("pending", REFUSED_VALUE)


@shows("Lengths")
@pytest.mark.parametrize(
    "changes",
    [
        {"owner_id": "x" * 81},
        {"logical_operation_id": "x" * 201},
        {"server": "x" * 61},
        {"operation_name": "x" * 2001},
        {"round_index": 2**40, "round_limit": 2**41},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_what_is_too_long_is_refused(scene: Scene, changes: dict[str, Any]) -> None:
    assert scene.created(**changes) == ("pending", INVALID)


@shows("Characters")
def test_characters_that_cannot_be_stored_are_refused(scene: Scene) -> None:
    assert scene.created(owner_id="a\0") == ("pending", INVALID)
    assert scene.created(owner_id="\ud800") == ("UnicodeEncodeError", INVALID)
    assert scene.answered({}, {"a": "\0"}) == (TAKEN, INVALID)
    assert scene.answered({}, {"a": "\ud800"}) == ("UnicodeEncodeError", REFUSED_VALUE)


@shows("Lists and objects in answers")
def test_lists_and_objects_are_judged_by_the_schema(scene: Scene) -> None:
    assert scene.field({"type": "array"}, ["x"]) == (INVALID, TAKEN)
    assert scene.field({"type": "object"}, {"x": 1}) == (INVALID, TAKEN)
    assert scene.field({"minItems": 2}, ["x"]) == (TAKEN, INVALID)


@shows("Unusable schemas")
@pytest.mark.parametrize(
    ("schema", "theirs"),
    [
        ({"type": "parcel"}, "UnknownType"),
        ({"type": 5}, "TypeError"),
        ({"$ref": "#"}, "RecursionError"),
        ({"properties": {"a": {"exclusiveMinimum": True}}}, TAKEN),
        ({"properties": {"a": {"pattern": "("}}}, TAKEN),
    ],
)
def test_an_unusable_schema_is_refused(scene: Scene, schema: dict[str, Any], theirs: str) -> None:
    assert scene.answered(schema, {}) == (theirs, INVALID)


@shows("References to published schemas")
def test_no_reference_leads_out_of_the_schema(scene: Scene) -> None:
    schema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert scene.answered(schema, {}) == (TAKEN, INVALID)


@shows("Formats")
@pytest.mark.parametrize("name", ["email", "uri", "date", "date-time", "time", "ipv4", "uuid"])
def test_formats_are_checked(scene: Scene, name: str) -> None:
    assert scene.field({"type": "string", "format": name}, "none of them") == (TAKEN, INVALID)


@shows("Patterns")
@pytest.mark.parametrize(
    ("pattern", "text", "answers"),
    [
        ("^x$", "x\n", (TAKEN, INVALID)),
        (r"^\d$", "\u0663", (TAKEN, INVALID)),
        ("(?P<a>x)", "x", (TAKEN, INVALID)),
        (r"^\p{L}+$", "x", ("error", TAKEN)),
    ],
)
def test_patterns_are_those_of_ecmascript(scene: Scene, pattern: str, text: str, answers: Answers) -> None:
    assert scene.field({"type": "string", "pattern": pattern}, text) == answers


@shows("Multiples of decimals")
def test_multiples_are_counted_in_decimals(scene: Scene) -> None:
    assert scene.field({"type": "number", "multipleOf": 0.1}, 0.3) == (INVALID, TAKEN)


@shows("Nesting")
def test_very_deep_content_is_refused(scene: Scene) -> None:
    content: dict[str, Any] = {}
    for _ in range(200):
        content = {"a": content}
    assert scene.answered({}, content) == ("RedactionError", REFUSED_VALUE)


def redacted(scene: Scene, content: dict[str, Any]) -> tuple[Any, Any]:
    at = scene.agreed(requests={"address": form(schema={}), "consent": page()})
    answers = {"address": response(content=content), "consent": response("decline")}
    scene.both.call("submit_responses", **at, **HOLDER, responses=answers, response_idempotency_key="key-1")
    theirs, ours = scene.both.answers("redacted_responses", **at)
    return theirs["ok"]["address"]["content"], ours["ok"]["address"]["content"]


@shows("The mask")
def test_the_mask_is_the_product_s_own(scene: Scene) -> None:
    theirs, ours = redacted(scene, {"token": "t", "link": "https://shop.example/?token=t"})
    assert theirs == {"token": "[REDACTED]", "link": "https://shop.example/?token=%5BREDACTED%5D"}
    assert ours == {"token": "[redacted]", "link": "https://shop.example/?token=[redacted]"}


@shows("Secret names")
def test_more_names_are_secret(scene: Scene) -> None:
    content = {"pin": "1", "otp": "1", "jwt": "x", "ssn": "1", "link": "https://shop.example/#access_token=t"}
    theirs, ours = redacted(scene, content)
    assert theirs == content
    masked = dict.fromkeys(["pin", "otp", "jwt", "ssn"], "[redacted]")
    assert ours == {**masked, "link": "https://shop.example/#access_token=[redacted]"}


def test_every_deviation_is_shown_by_a_test_and_nothing_else_is() -> None:
    assert shown == {deviation.name for deviation in DEVIATIONS}


def test_the_page_lists_the_deviations() -> None:
    listed = rows(section("docs/managed-input.md", "## Compared with the reference"))
    assert listed == [
        [deviation.name, deviation.reference, deviation.ours, deviation.why] for deviation in DEVIATIONS
    ]
