"""What a consent card says about a URL, and when it has no link (R41, R42)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.visible import UrlView, url_warnings, visible


def test_a_plain_https_address_gets_a_link_and_no_warning() -> None:
    assert url_warnings("https://pay.example.com/consent?id=1#top") == UrlView(
        href="https://pay.example.com/consent?id=1#top",
        scheme="https",
        before_host="https://",
        host="pay.example.com",
        after_host="/consent?id=1#top",
        host_ascii="pay.example.com",
        warnings=(),
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "ftp://example.com/",
        "file:///etc/passwd",
        "//example.com",
        "example.com",
        "",
        "https:///path",
        "https:example.com",
        "https://:443/",
        "https://[::1",
        "https://a:99999/",
        "https://ex%61mple.com/",
        "https://a..b/",
        f"https://{'a' * 70}.com/",
        f"https://{'ä' * 10_000}.com/",
    ],
    ids=lambda url: url[:30],
)
def test_anything_but_a_complete_https_address_has_no_link_and_says_why(url: str) -> None:
    view = url_warnings(url, allow_http_loopback=True)
    assert view.href is None
    assert view.warnings


@pytest.mark.parametrize(
    "url",
    [
        r"https://good.example\@evil.example/",
        "https://good.example\t.evil.example/",
        " https://good.example/",
        "https://good.example/\n",
        "https://good\u200b.example/",
        "https://good.example/\u202egnp.exe",
        "https://ex\ud800.example/",
        "https://2130706433/",
        "https://0x7f.0.0.1/",
        "https://127.1/",
        "https://fußball.example/",
    ],
)
def test_an_address_that_a_browser_may_read_differently_has_no_link(url: str) -> None:
    view = url_warnings(url, allow_http_loopback=True)
    assert view.href is None
    assert view.warnings


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/", "http://127.0.0.1/x", "http://[::1]:9/", "http://app.localhost/"]
)
def test_http_is_linked_only_to_this_machine_and_only_in_development(url: str) -> None:
    assert url_warnings(url, allow_http_loopback=True).href == url
    assert url_warnings(url).href is None


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("https://good.example@evil.example/", "before the host"),
        ("https://xn--80ak6aa92e.com/", "technical name is xn--80ak6aa92e.com"),
        ("https://\u0430pple.com/", "mixes letters of different alphabets"),
        ("https://xn--pple-43d.com/", "mixes letters of different alphabets"),
        ("https://example.com:8443/", "unusual port 8443"),
        ("https://192.0.2.7/", "bare number address"),
        ("https://example.com/" + "a" * 2_000, "unusually long (2020 characters)"),
    ],
    ids=lambda value: value[:35],
)
def test_a_disguised_address_keeps_its_link_and_gets_a_warning(url: str, word: str) -> None:
    view = url_warnings(url)
    assert view.href is not None
    assert any(word in warning for warning in view.warnings)


def test_the_host_that_is_shown_is_the_one_behind_the_userinfo() -> None:
    view = url_warnings("https://good.example@evil.example:444/x")
    assert (view.before_host, view.host, view.after_host) == (
        "https://good.example@",
        "evil.example",
        ":444/x",
    )


def test_a_link_spells_the_host_as_it_will_be_looked_up() -> None:
    assert url_warnings("https://münchen.example/ä").href == "https://xn--mnchen-3ya.example/ä"
    assert url_warnings("https://a。example/").host_ascii == "a.example"


def test_japanese_names_are_not_called_mixed() -> None:
    warnings = url_warnings("https://東京タワーです.example/").warnings
    assert not any("alphabets" in warning for warning in warnings)


@pytest.mark.parametrize("port", ["443", ""])
def test_the_usual_port_is_no_warning(port: str) -> None:
    assert url_warnings(f"https://example.com:{port}/").warnings == ()


url_texts = st.one_of(
    st.text(st.characters(codec=None, categories=None), max_size=40),
    st.builds(
        "{}://{}{}".format,
        st.sampled_from(["https", "http", "HTTPS", "x"]),
        st.text("aé.:@[]/%-xn0١\u200d\u0430", max_size=12),
        st.text(st.characters(codec=None, categories=None), max_size=10),
    ),
)


@given(url_texts, st.booleans())
def test_no_text_breaks_the_view_and_all_of_it_is_shown(url: str, loopback: bool) -> None:
    view = url_warnings(url, allow_http_loopback=loopback)
    assert view.before_host + view.host + view.after_host == visible(url)
    assert view.href is None or view.href.startswith(("https://", "http://"))
    assert view.href is not None or view.warnings
