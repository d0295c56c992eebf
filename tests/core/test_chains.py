"""Where a chain of hashes breaks: every way to tamper with it has its row and its words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from runs.canonical import digest
from runs.chains import End, Link, first_break


def chain(length: int = 4) -> list[Link]:
    links: list[Link] = []
    for seq in range(1, length + 1):
        previous = links[-1].hash if links else ""
        covered = {"seq": seq, "what": f"number {seq}", "previous": previous}
        links.append(Link(seq=seq, content=covered, previous=previous, hash=digest(covered)))
    return links


def rewritten(links: list[Link], number: int, what: str) -> list[Link]:
    """The chain with one row changed and everything after it computed anew, as somebody careful would."""
    done = links[: number - 1]
    for link in links[number - 1 :]:
        previous = done[-1].hash if done else ""
        covered = {**link.content, "previous": previous} | ({"what": what} if link.seq == number else {})
        done.append(Link(seq=link.seq, content=covered, previous=previous, hash=digest(covered)))
    return done


def end_of(links: list[Link]) -> End:
    return End(seq=len(links), head=links[-1].hash if links else "")


def test_a_chain_as_it_was_written_has_no_break() -> None:
    links = chain()
    assert first_break(links, end_of(links), {2: links[1].hash}) is None
    assert first_break([], End(seq=0, head="")) is None


Tampering = Callable[[list[Link]], list[Link]]


@pytest.mark.parametrize(
    ("tamper", "seq", "words"),
    [
        (lambda c: [*c[:1], replace(c[1], content={**c[1].content, "what": "else"}), *c[2:]], 2, "altered"),
        (lambda c: [*c[:1], replace(c[1], hash="sha256:0"), *c[2:]], 2, "altered"),
        (lambda c: [c[0], *c[2:]], 2, "missing"),
        (lambda c: c[1:], 1, "missing"),
        (lambda c: c[:-1], 4, "missing; there should be 4"),
        (lambda c: [], 1, "missing"),
        (lambda c: [c[0], c[0], *c[1:]], 1, "inserted"),
        (lambda c: [*c[:1], replace(c[1], fault="cannot be read any more"), *c[2:]], 2, "cannot be read"),
        (lambda c: [*c[:1], rewritten(c, 2, "else")[1], *c[2:]], 2, "replaced"),
        (lambda c: rewritten(c, 4, "else"), 4, "not the one with which the chain ended"),
    ],
    ids=[
        "content",
        "hash",
        "taken out",
        "first taken out",
        "cut off",
        "all gone",
        "twice",
        "unreadable",
        "one rewritten",
        "last rewritten",
    ],
)
def test_the_first_row_that_does_not_fit_is_named(tamper: Tampering, seq: int, words: str) -> None:
    links = chain()
    found = first_break(tamper(links), end_of(links))
    assert found is not None
    assert found.seq == seq
    assert words in found.what


def test_rows_in_another_order_are_found() -> None:
    one, two, three, four = chain()
    # To change places each takes the other's number, or the order would be the old one.
    swapped = [one, replace(three, seq=2), replace(two, seq=3), four]
    found = first_break(swapped, end_of([one, two, three, four]))
    assert found is not None
    assert found.seq == 1
    assert "number 2 follows on another" in found.what


def test_a_chain_that_was_written_anew_as_a_whole_is_found_by_a_hash_that_was_kept_elsewhere() -> None:
    links = chain()
    forged = rewritten(links, 2, "else")
    assert first_break(forged, end_of(forged)) is None, "nothing inside of it tells"
    found = first_break(forged, end_of(forged), {3: links[2].hash})
    assert found is not None
    assert (found.seq, "kept elsewhere" in found.what) == (3, True)


def test_a_tail_that_was_cut_off_with_its_count_is_found_by_a_hash_that_was_kept_elsewhere() -> None:
    links = chain()
    assert first_break(links[:2], end_of(links[:2])) is None, "nothing inside of it tells"
    found = first_break(links[:2], end_of(links[:2]), {4: links[3].hash})
    assert found is not None
    assert (found.seq, found.what) == (3, "is missing; number 4 was there once")


def test_a_value_that_has_no_json_counts_as_altered() -> None:
    (link,) = chain(1)
    found = first_break(
        [replace(link, content={**link.content, "what": float("nan")})], End(seq=1, head=link.hash)
    )
    assert found is not None
    assert "altered" in found.what
