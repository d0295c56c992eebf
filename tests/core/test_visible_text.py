"""Characters that hide or reorder others are written out (R13)."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runs.visible import has_hidden, visible


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\u202e", "⟨U+202E⟩"),
        ("\u2066", "⟨U+2066⟩"),
        ("\u200b", "⟨U+200B⟩"),
        ("\u200d", "⟨U+200D⟩"),
        ("\ufeff", "⟨U+FEFF⟩"),
        ("\u00ad", "⟨U+00AD⟩"),
        ("\u034f", "⟨U+034F⟩"),
        ("\u3164", "⟨U+3164⟩"),
        ("\ufe0f", "⟨U+FE0F⟩"),
        ("\u2028", "⟨U+2028⟩"),
        ("\u0085", "⟨U+0085⟩"),
        ("\ue000", "⟨U+E000⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\U000e0100", "⟨U+E0100⟩"),
        ("\x1b", "⟨U+001B⟩"),
        ("\x00", "⟨U+0000⟩"),
        ("\x7f", "⟨U+007F⟩"),
        ("\r", "⟨U+000D⟩"),
        ("\ud800", "⟨U+D800⟩"),
    ],
)
def test_a_hidden_character_is_written_out_in_place(char: str, shown: str) -> None:
    assert visible(f"pay{char}pal") == f"pay{shown}pal"
    assert has_hidden(f"pay{char}pal")


@pytest.mark.parametrize("text", ["", "plain", "two\n\tlines", "Grüße, 東京 – Ωμέγα", "naïve e\u0301", "👍"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert visible(text) == text
    assert not has_hidden(text)


@given(st.text(st.characters(codec=None, categories=None), max_size=60))
def test_what_is_shown_hides_nothing_and_can_always_be_sent(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert not has_hidden(shown)
    assert all(char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co"} for char in shown)
