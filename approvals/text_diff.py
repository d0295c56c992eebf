"""What changed in a text, as pieces that read in one flow: kept, gone and new.

Plain module. The texts come from servers; every piece has been through `visible` (R13).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final

from runs.visible import visible

MAX_TOKENS: Final = 1_200
"""Words, else lines, of both texts together that are compared one by one: the comparison is quadratic at worst, and
whoever writes the texts may want it to be slow. Beyond that the texts are shown one after the other."""

_WORDS: Final = re.compile(r"\s+|\S+")


class Mark(StrEnum):
    SAME = "same"
    GONE = "gone"
    NEW = "new"


@dataclass(frozen=True)
class Piece:
    """A stretch of text that was kept, is gone or is new. Kept and gone ones make the old text, in order; kept and
    new ones the new text."""

    mark: Mark
    text: str


def text_pieces(before: str, after: str) -> tuple[Piece, ...]:
    """The difference between two texts, by words, or by lines where there are many words; equal ones are one piece."""
    old, new = _tokens(before, after)
    return tuple(_merged(_compared(old, new)))


def _tokens(before: str, after: str) -> tuple[list[str], list[str]]:
    for split in (_WORDS.findall, lambda text: text.splitlines(keepends=True)):
        old, new = split(before), split(after)
        if len(old) + len(new) <= MAX_TOKENS:
            return old, new
    return [before], [after]


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterable[Piece]:
    for tag, i, j, k, end in SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            yield Piece(Mark.SAME, "".join(old[i:j]))
            continue
        yield Piece(Mark.GONE, "".join(old[i:j]))
        yield Piece(Mark.NEW, "".join(new[k:end]))


def _merged(pieces: Iterable[Piece]) -> Iterable[Piece]:
    """A blank that alone was kept between two changes would tear a sentence into single words: it joins them."""
    gone = new = blank = ""
    for piece in pieces:
        if piece.mark is Mark.GONE:
            gone += blank + piece.text
        if piece.mark is Mark.NEW:
            new, blank = new + blank + piece.text, ""
        if piece.mark is Mark.SAME:
            if (gone or new) and piece.text.isspace() and "\n" not in piece.text:
                blank = piece.text
                continue
            yield from _changed(gone, new, blank)
            gone = new = blank = ""
            yield Piece(Mark.SAME, visible(piece.text))
    yield from _changed(gone, new, blank)


def _changed(gone: str, new: str, blank: str) -> Iterable[Piece]:
    for mark, text in ((Mark.GONE, gone), (Mark.NEW, new), (Mark.SAME, blank)):
        if text:
            yield Piece(mark, visible(text))
