"""Text and URLs from outside, made safe to look at (R13, R41, R42).

Plain module. Nothing here makes markup: templates escape what these functions return, as always.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import SplitResult, urlsplit

_KEPT: Final = frozenset("\n\t")
_HIDDEN_CATEGORIES: Final = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})

# Characters that draw nothing although Unicode files them under letters, marks, symbols or "unassigned":
# grapheme joiner, Hangul and Khmer fillers, variation selectors, Braille blank, tags and reserved ignorables.
_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    if char in _KEPT:
        return char
    if unicodedata.category(char) in _HIDDEN_CATEGORIES or _BLANK.match(char):
        return f"⟨U+{ord(char):04X}⟩"
    return char


def visible(text: str) -> str:
    """The text with every character that hides or reorders others written out, as in `⟨U+202E⟩` (R13).

    Control, format, bidirectional, zero-width, private-use and lone surrogate characters are shown; newline
    and tab stay. The result can be encoded as UTF-8 whatever came in.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def has_hidden(text: str) -> bool:
    """Whether `visible` would show something that the eye would have missed."""
    return visible(text) != text


@dataclass(frozen=True, kw_only=True)
class UrlView:
    """A URL for a consent card: its full text in three pieces around the host, and what to warn about.

    `href` is what a link may point to, or None when there must be no link; in it the host is spelled in
    ASCII. `before_host + host + after_host` is the whole URL as visible text. `host_ascii` is the host that a
    browser would connect to, "" when that cannot be told.
    """

    href: str | None
    scheme: str
    before_host: str
    host: str
    after_host: str
    host_ascii: str
    warnings: tuple[str, ...]


_LONG_URL: Final = 2_000
_MAX_LINK: Final = 8_000
_MAX_HOST: Final = 255
_LONG_SCHEME: Final = 30
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# Browsers and urlsplit disagree about these, so the host that we show need not be the one they open.
_AMBIGUOUS: Final = re.compile(r"[\\\s]")
_HOST: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?")

# IDNA 2003 (Python) and browsers map these letters to different names.
_DEVIATIONS: Final = frozenset("ßẞς")

# Scripts that are written together in one language.
_COMPATIBLE: Final = (
    frozenset({"LATIN", "CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA"}),
    frozenset({"LATIN", "CJK", "HANGUL"}),
    frozenset({"LATIN", "CJK", "BOPOMOFO"}),
)


def url_warnings(url: str, *, allow_http_loopback: bool = False) -> UrlView:
    """Look at a URL that a server wants opened, without opening it (R41, R42).

    Only https gets a link, and http to this machine when `allow_http_loopback` (development). A URL that a
    browser might read differently from us gets none. Never raises, whatever the text is.
    """
    split = _split(url)
    if split is None or not split.netloc or not split.hostname:
        return _without_host(url)
    before, host, after = _pieces(url, split)
    host_ascii = _host_ascii(host)
    refusals = _refusals(url, split, host_ascii, allow_http_loopback=allow_http_loopback)
    return UrlView(
        href=None if refusals else f"{split.scheme}{before[len(split.scheme) :]}{host_ascii}{after}",
        scheme=split.scheme,
        before_host=visible(before),
        host=visible(host),
        after_host=visible(after),
        host_ascii=host_ascii,
        warnings=(*refusals, *_warnings(url, split, host, host_ascii)),
    )


def _split(url: str) -> SplitResult | None:
    # urlsplit silently drops tabs and newlines and leading control characters; the pieces must add up.
    if has_hidden(url) or _AMBIGUOUS.search(url):
        return None
    try:
        split = urlsplit(url)
        _ = split.port
    except ValueError:
        return None
    return split


def _without_host(url: str) -> UrlView:
    match = re.match(r"[A-Za-z][A-Za-z0-9+.-]*(?=:)", url)
    scheme = match.group().lower() if match else ""
    if scheme in {"", "http", "https"}:
        warnings = ["This is not a complete web address, so there is no link."]
    else:
        warnings = [f"Only https addresses get a link; this one is {scheme[:_LONG_SCHEME]}."]
    if has_hidden(url):
        warnings.append("The address contains hidden characters; they are written out here.")
    elif _AMBIGUOUS.search(url):
        warnings.append("The address contains blanks or backslashes, which browsers read in different ways.")
    return UrlView(
        href=None,
        scheme=scheme,
        before_host=visible(url),
        host="",
        after_host="",
        host_ascii="",
        warnings=tuple(warnings),
    )


def _pieces(url: str, split: SplitResult) -> tuple[str, str, str]:
    """The URL cut into what stands before the host, the host as written, and the rest."""
    start = url.index("//") + 2 + split.netloc.rfind("@") + 1
    authority = split.netloc.rpartition("@")[2]
    host = authority[: authority.index("]") + 1] if authority.startswith("[") else authority.partition(":")[0]
    return url[:start], host, url[start + len(host) :]


def _host_ascii(host: str) -> str:
    """The host as a browser would look it up, or "" when we cannot be sure of it."""
    if host.startswith("["):
        address = _address(host[1:-1])
        return f"[{address}]" if isinstance(address, ipaddress.IPv6Address) else ""
    if len(host) > _MAX_HOST or _DEVIATIONS.intersection(host):
        return ""
    try:
        name = host.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return ""
    if not _HOST.fullmatch(name):
        return ""
    # A name that ends in a number is an address in disguise (0x7f.1, 2130706433) unless it is plain IPv4.
    last = name.rstrip(".").rpartition(".")[2]
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", last) and _address(name) is None:
        return ""
    return name


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_loopback(host_ascii: str) -> bool:
    name = host_ascii.strip("[]").rstrip(".")
    address = _address(name)
    return address.is_loopback if address else name == "localhost" or name.endswith(".localhost")


def _refusals(url: str, split: SplitResult, host_ascii: str, *, allow_http_loopback: bool) -> list[str]:
    """Why there must be no link; empty if there may be one."""
    refusals = []
    may_be_http = allow_http_loopback and _is_loopback(host_ascii)
    if split.scheme != "https" and not (split.scheme == "http" and may_be_http):
        refusals.append(
            f"Only https addresses get a link; this one is {visible(split.scheme) or 'something else'}."
        )
    if not host_ascii:
        refusals.append("It is not clear which host this address leads to, so there is no link.")
    if len(url) > _MAX_LINK:
        refusals.append("The address is too long for a link.")
    return refusals


def _warnings(url: str, split: SplitResult, host: str, host_ascii: str) -> list[str]:
    """What a person should look at before opening the link."""
    warnings = []
    if "@" in split.netloc:
        warnings.append("There is a name or password before the host; it is often used to disguise the host.")
    if "xn--" in host_ascii:
        warnings.append(f"The host is not written in plain letters. Its technical name is {host_ascii}.")
    if any(_is_mixed(label) for label in _readable(host[:_MAX_HOST]).split(".")):
        warnings.append("The host mixes letters of different alphabets that may look alike.")
    if split.port is not None and split.port != _DEFAULT_PORTS.get(split.scheme):
        warnings.append(f"The address uses the unusual port {split.port}.")
    if _address(host_ascii.strip("[]")):
        warnings.append("The host is a bare number address, not a name.")
    if len(url) > _LONG_URL:
        warnings.append(f"The address is unusually long ({len(url)} characters).")
    return warnings


def _readable(host: str) -> str:
    """The host with punycode labels decoded, as far as they can be."""
    labels = []
    for label in host.lower().split("."):
        try:
            labels.append(label.encode("ascii").decode("idna"))
        except UnicodeError:
            labels.append(label)
    return ".".join(labels)


def _is_mixed(label: str) -> bool:
    scripts = {unicodedata.name(char, "UNKNOWN").split()[0] for char in label if char.isalpha()}
    return len(scripts) > 1 and not any(scripts <= together for together in _COMPATIBLE)
