"""The arithmetic and the tables. Plain module; every duration in it is milliseconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest of `values` that at least `share` (0 < share <= 1) of them do not exceed (nearest rank).

    Always a value that was measured. Raises ValueError for no values or a share outside its range.
    """
    if not values or not 0 < share <= 1:
        raise ValueError("a percentile needs values and a share above 0, at most 1")
    return sorted(values)[math.ceil(share * len(values)) - 1]


@dataclass(frozen=True, kw_only=True)
class Series:
    """One duration, measured again and again."""

    name: str
    values: Sequence[float]

    @property
    def p50(self) -> float:
        return percentile(self.values, 0.5)

    @property
    def p95(self) -> float:
        return percentile(self.values, 0.95)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What one benchmark found: a title, a table, and what a reader must know of it."""

    title: str
    table: str
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        return "\n\n".join([f"## {self.title}", self.table, *self.notes])


def ratio_table(measured: Sequence[Series], *, commit: Series, echo: Series) -> str:
    """p50 / p95 of each series, in milliseconds and as multiples of the yardsticks' medians.

    Medians, because a p95 is noise first of all: a yardstick's own p95 in its own medians says how noisy the
    machine was.
    """
    header = ["p50 / p95", "ms", "in bare commits", "in bare echoes", "samples"]
    return table(header, [_ratio_row(one, commit, echo) for one in (commit, echo, *measured)])


def _ratio_row(one: Series, commit: Series, echo: Series) -> list[str]:
    multiples = [pair(one.p50 / unit, one.p95 / unit) for unit in (1, commit.p50, echo.p50)]
    return [one.name, *multiples, str(len(one.values))]


def pair(p50: float, p95: float) -> str:
    return f"{short(p50)} / {short(p95)}"


def short(value: float) -> str:
    """Two significant digits at least; more would claim a precision that is not there."""
    digits = 0 if abs(value) >= 99.5 else 1 if abs(value) >= 9.95 else 2
    return f"{value:.{digits}f}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table whose columns line up in a terminal too; the first column is words, the rest numbers.

    Raises ValueError if a row has another number of cells than the header.
    """
    if any(len(row) != len(header) for row in rows):
        raise ValueError("every row of a table has as many cells as its header")
    widths = [max(3, *(len(cell) for cell in column)) for column in zip(header, *rows, strict=True)]
    rule = ["-" * widths[0], *(f"{'-' * (width - 1)}:" for width in widths[1:])]
    return "\n".join(_line(cells, widths) for cells in (header, rule, *rows))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return f"| {' | '.join([first, *rest])} |"
