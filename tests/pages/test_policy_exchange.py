"""Rules as a file: downloaded, and brought in after a look at what that would do. All of it or nothing."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from approvals.models import Policy, Source
from approvals.policies import grant
from runs.models import Account, EndUser, Server, User
from tests.pages.policy_pages import hidden, text_of
from tests.services.policy_helpers import rule

DENY = {"effect": "deny", "target": "desk:refund"}
ALLOW = {"effect": "allow", "target": "desk:send_email", "note": "Fine."}


@pytest.fixture
def ada_at(ada: User, desk: Server, client_for: Callable[[User], Client]) -> Client:
    return client_for(ada)


def wrapped(*rules: dict[str, Any]) -> str:
    return json.dumps({"version": 1, "rules": rules})


def confirmed(client: Client, page: Any, **more: str) -> Any:
    """Import what the page shows, as its form sends it."""
    source = re.search(r'<textarea name="text"[^>]*>(.*?)</textarea>', page.content.decode(), re.DOTALL)
    assert source
    sent = {
        "text": html.unescape(source[1]),
        "shown": hidden(page, "shown"),
        "seen": hidden(page, "seen"),
        "step": "save",
        **more,
    }
    return client.post("/policies/import", sent)


def test_the_download_is_a_file_that_the_import_takes_back(ada_at: Client, account: Account) -> None:
    grant(None, rule(account), source=Source.API, note="<b>Grüße</b>")
    answer = ada_at.get("/policies/export")
    assert answer["Content-Type"] == "application/json"
    assert answer["Content-Disposition"].startswith('attachment; filename="policies-acme-')
    assert json.loads(answer.content)["rules"][0]["note"] == "<b>Grüße</b>"
    file = SimpleUploadedFile("rules.json", answer.content)
    page = ada_at.post("/policies/import", {"file": file})
    assert "There is nothing to do." in text_of(page)
    assert "<b>Gr" not in page.content.decode()


def test_a_look_says_what_it_would_do_and_does_nothing(ada_at: Client, account: Account) -> None:
    there = grant(None, rule(account), source=Source.API, note="Old.")
    page = ada_at.post("/policies/import", {"text": wrapped({**DENY, "user_id": "cust_new"}, ALLOW)})
    text = text_of(page)
    assert page.status_code == 200
    assert "Deny desk:refund in every run for the user cust_new" in text
    assert "Note: “Old.” → “Fine.”" in text
    assert f'href="/policies/{there.pk}"' in page.content.decode()
    assert Policy.objects.get().note == "Old."
    assert not EndUser.objects.exists()

    done = confirmed(ada_at, page)
    assert done.status_code == 302
    assert "Imported: 1 made, 1 changed, 0 unchanged, 0 left out." in text_of(ada_at.get("/policies"))
    assert Policy.objects.count() == 2


def test_what_covers_high_stakes_is_named_and_needs_the_tick(ada_at: Client, desk: Server) -> None:
    desk.tools.filter(name="send_email").update(risk="access")
    page = ada_at.post("/policies/import", {"text": wrapped(DENY, ALLOW)})
    assert "desk:send_email is high-stakes (access)" in text_of(page)
    refused = confirmed(ada_at, page)
    assert refused.status_code == 409
    assert "Tick that you have seen" in text_of(refused)
    assert not Policy.objects.exists()
    assert confirmed(ada_at, page, confirm="1").status_code == 302
    assert Policy.objects.count() == 2


def test_an_import_that_would_do_something_else_by_now_is_shown_again(
    ada_at: Client, account: Account
) -> None:
    page = ada_at.post("/policies/import", {"text": wrapped(ALLOW)})
    grant(None, rule(account), source=Source.API)
    again = confirmed(ada_at, page)
    assert again.status_code == 409
    assert "something else by now" in text_of(again)
    assert Policy.objects.get().note == ""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Give one: a file, or text"),
        ('{"version": 1,\n "rules": [}', "Line 2, column 12"),
        ('{"version": 1, "version": 1}', "stands twice"),
        ("[]", "Rules are imported as"),
        (wrapped(DENY, {**DENY, "effect": "maybe"}, {**DENY, "target": "*"}), "Rule 2: The effect is one of"),
        (wrapped(DENY, {**DENY, "effect": "maybe"}, {**DENY, "target": "*"}), "Rule 3: A rule is about"),
        (wrapped(DENY, DENY), "Rules 1 and 2 are the same rule"),
    ],
)
def test_mistakes_are_named_by_line_or_rule_and_nothing_is_imported(
    ada_at: Client, text: str, says: str
) -> None:
    answer = ada_at.post("/policies/import", {"text": text})
    assert answer.status_code == 422
    assert says in text_of(answer)
    assert html.escape(text) in answer.content.decode()
    assert not Policy.objects.exists()


def test_a_file_that_is_no_text_and_both_at_once_are_refused(ada_at: Client) -> None:
    binary = SimpleUploadedFile("rules.json", b"\xff\xfe\x00")
    assert "no text in UTF-8" in text_of(ada_at.post("/policies/import", {"file": binary}))
    file = SimpleUploadedFile("rules.json", wrapped(DENY).encode())
    both = ada_at.post("/policies/import", {"file": file, "text": wrapped(DENY)})
    assert "Give one" in text_of(both)


def test_a_file_may_begin_with_a_byte_order_mark(ada_at: Client) -> None:
    file = SimpleUploadedFile("rules.json", b"\xef\xbb\xbf" + wrapped(DENY).encode())
    assert ada_at.post("/policies/import", {"file": file}).status_code == 200


def test_the_way_back_keeps_the_text(ada_at: Client) -> None:
    answer = ada_at.post("/policies/import", {"text": "half [", "step": "back"})
    assert answer.status_code == 200
    assert "half [" in answer.content.decode()


@pytest.mark.parametrize("name", ["alice", "vera"])
def test_only_admins_export_and_import(
    name: str, request: pytest.FixtureRequest, desk: Server, client_for: Callable[[User], Client]
) -> None:
    client = client_for(request.getfixturevalue(name))
    assert client.get("/policies/export").status_code == 403
    assert client.post("/policies/import", {"text": wrapped(DENY), "step": "save"}).status_code == 403
    assert not Policy.objects.exists()
