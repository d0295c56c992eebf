"""Every refusal reaches who uses the m8tes SDK as the class and the code that they branch on (m8tes-http 1.11)."""

from __future__ import annotations

from tests.api.m8tes import MAIL, Sdk, ended


def test_refusals_about_runs_are_the_sdks_errors(sdk: Sdk, agents: dict[str, int]) -> None:
    assert sdk.play("errors.of_runs", agent_id=agents["talks"], ended=ended(sdk, agents)) == {
        "no such run": ["NotFoundError", 404, "not_found"],
        "no such agent": ["NotFoundError", 404, "not_found"],
        "another user's run": ["NotFoundError", 404, "not_found"],
        "nothing to do": ["ValidationError", 422, "invalid_argument"],
        "a mode that asks nobody": ["ValidationError", 422, "invalid_argument"],
        "no such mode": ["ValidationError", 422, "invalid_argument"],
        "the mode of a run that is over": ["ConflictError", 409, "state_conflict"],
        "cancel what is over": ["ConflictError", 409, "state_conflict"],
        "answer what is over": ["ConflictError", 409, "not_awaiting_input"],
        "answer nothing": ["ValidationError", 422, "invalid_argument"],
        "no such gate": ["NotFoundError", 404, "gate_not_found"],
        "files": ["ValidationError", 422, "files_not_supported"],
    }


def test_refusals_about_gates_are_the_sdks_errors(sdk: Sdk, agents: dict[str, int]) -> None:
    call, question = sdk.parked(agents["mails"]), sdk.parked(agents["asks"])

    options = [{"label": "Dry (Recommended)"}, {"label": "Warm"}]
    ask = {
        "questions": [{"question": "Which tone?", "header": "Tone", "options": options}],
        "blocking": False,
    }
    steps = [{"ask": ask, "as": "a"}, {**MAIL, "as": "m"}]
    answered_itself = sdk.parked(sdk.agent("Decides", "desk", steps=steps))

    found = sdk.play("errors.of_gates", run_id=call, question=question, answered_itself=answered_itself)

    assert found == {
        "no such decision": ["ValidationError", 422, "invalid_argument"],
        "answer a call": ["ValidationError", 422, "use_approve"],
        "approve a question": ["ValidationError", 422, "use_answer"],
        "a question that nobody asked": ["ValidationError", 422, "unknown_question"],
        "a question that went on by itself": ["ConflictError", 409, "auto_continued"],
        "the opposite": ["NotFoundError", 404, "gate_resolved_otherwise"],
        "a call of a cancelled run": ["NotFoundError", 404, "gate_cancelled"],
    }


def test_refusals_about_the_rest_are_the_sdks_errors(sdk: Sdk, agents: dict[str, int]) -> None:
    assert sdk.play("errors.of_the_rest", agent_id=agents["talks"]) == {
        "the same user": ["ConflictError", 409, "user_exists"],
        "no such user": ["NotFoundError", 404, "not_found"],
        "no such policy": ["NotFoundError", 404, "not_found"],
        "no such agent": ["NotFoundError", 404, "not_found"],
        "no such task": ["NotFoundError", 404, "not_found"],
        "what there is not here": ["NotFoundError", 404, "not_found"],
        "an empty tool": ["ValidationError", 422, "invalid_argument"],
        "the key of another request": ["ConflictError", 409, "idempotency_key_reuse"],
    }


def test_a_wrong_key_is_no_authentication_and_a_key_that_only_reads_no_permission(
    sdk: Sdk, agents: dict[str, int]
) -> None:
    assert sdk.play("errors.with_a_wrong_key", with_key="m3_wrong") == [
        "AuthenticationError",
        401,
        "not_authenticated",
    ]
    assert sdk.play(
        "errors.with_a_key_that_only_reads", with_key=sdk.reading_key(), agent_id=agents["talks"]
    ) == [
        True,
        ["PermissionDeniedError", 403, "not_allowed"],
    ]
