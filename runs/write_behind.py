"""Writes of one transaction that wait until the database has to know them.

Inside `kept` what is saved of one row several times is stored once, rows of one table are inserted together, and what
waits is carried out in one round trip. A statement of `runs.prepared` that names a table with waiting writes is carried
out after them; any other statement, a savepoint and the end of `kept` after all of them. So nobody inside sees a
difference: only an error of the database comes later than it would have.

Rows whose lock the transaction has taken can be held, too: what an instance says of its row is then true, and need not
be asked again.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

from django.db import transaction
from django.db.models import Model

from runs import statements
from runs.statements import Given, Result, current

T = TypeVar("T")
M = TypeVar("M", bound=Model)
Values = dict[str, Any]

_here = threading.local()
"""What waits in the transaction of the calling thread, as `waiting`."""


class Question(Protocol):
    """As `prepared.Asked`."""

    @property
    def given(self) -> Given: ...

    @property
    def read(self) -> Callable[[Result], Any]: ...


Act = Callable[[Sequence[T], Sequence[Any]], None]
"""What is to be done at the end: with all its items, and the answers to its questions."""


class Waiting(Protocol):
    """A write that waits."""

    def given(self) -> Given:
        """What is to be carried out, as it is known by now."""

    def done(self, result: Result) -> None:
        """It was carried out. Raises if that had not the result that it must have."""


class Kept(statements.Own):
    """What waits in one transaction."""

    def __init__(self, at: Any) -> None:
        self.at = at
        """The connection of the transaction."""
        self.rows: dict[tuple[type[Model], Any], Values] = {}
        """The values of rows whose writes wait and can take more."""
        self.inserts: dict[type[Model], list[tuple[Model, Values]]] = {}
        """New rows of a table that wait and can be joined by more."""
        self.moment: tuple[dt.datetime, float] | None = None
        """What the server's clock said, and when, by the monotonic clock of this process."""
        self._held: dict[tuple[type[Model], Any], Model] = {}
        self._waiting: list[Waiting] = []
        self._tables: set[str] = set()
        self._endings: dict[tuple[Act[Any], Hashable], tuple[list[Any], Sequence[Question]]] = {}
        self._ours = False

    def add(self, write: Waiting, table: str) -> None:
        self._waiting.append(write)
        self._tables.add(table)

    def add_whole(self, given: Given, table: str) -> None:
        """A statement about many rows. What waits of the tables that it names is stored before it, as it is now."""
        named = given.statement.names
        for key in [key for key in self.rows if key[0]._meta.db_table in named]:
            del self.rows[key]
        for model in [model for model in self.inserts if model._meta.db_table in named]:
            del self.inserts[model]
        self.add(_Whole(given), table)

    def carry_out(self, given: Sequence[Given]) -> list[Result]:
        """Carry out statements, after what waits if they name a table of it."""
        if any(self._tables & one.statement.names for one in given):
            return self._through(given)
        return self._by_us(given)

    def at_once(self, given: Given) -> Result:
        """Carry out one of which the order does not matter: it makes a row that nothing refers to yet."""
        (result,) = self._by_us([given])
        return result

    def hold(self, row: Model) -> None:
        self._held[type(row), row.pk] = row

    def held(self, model: type[M], pk: object) -> M | None:
        return cast("M | None", self._held.get((model, pk)))

    def changed(self, row: Model) -> None:
        """What another instance says of this row is no longer known to be true."""
        if self._held.get((type(row), row.pk)) is not row:
            self._held.pop((type(row), row.pk), None)

    def at_end(self, act: Act[T], item: T, asked: Sequence[Question], key: Hashable) -> None:
        items, _ = self._endings.setdefault((act, key), ([], asked))
        items.append(item)

    def end(self) -> None:
        """Carry out everything that waits, and what was to be done at the end."""
        while True:
            endings, self._endings = self._endings, {}
            results = iter(self._through([one.given for _, asked in endings.values() for one in asked]))
            answers = [[one.read(next(results)) for one in asked] for _, asked in endings.values()]
            if not endings:
                return
            for (act, _), (items, _), answered in zip(endings, endings.values(), answers, strict=True):
                act(items, answered)

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """A statement is about to be carried out that Django or others made. From a savepoint on, which might be rolled
        back to, nothing waits any more."""
        if not self._ours:
            if str(sql).startswith("SAVEPOINT"):
                self.end()
                _here.waiting = None
            self._through(())
            self._held.clear()
        return execute(sql, params, many, context)

    def _through(self, given: Sequence[Given]) -> list[Result]:
        waiting, self._waiting = self._waiting, []
        self._tables.clear()
        self.rows.clear()
        self.inserts.clear()
        results = self._by_us([*(write.given() for write in waiting), *given])
        for write, result in zip(waiting, results, strict=False):
            write.done(result)
        return results[len(waiting) :]

    def _by_us(self, given: Sequence[Given]) -> list[Result]:
        self._ours = True
        try:
            return statements.carry_out(given)
        finally:
            self._ours = False


class _Whole:
    """A statement about many rows, of which nobody asked how many."""

    def __init__(self, given: Given) -> None:
        self._given = given

    def given(self) -> Given:
        return self._given

    def done(self, result: Result) -> None:
        pass


@contextmanager
def kept() -> Iterator[None]:
    """Let writes wait until the end of this block, which is to be the whole of a transaction of its own, or of a
    savepoint. Inside of another such block it does nothing."""
    at = current()
    if not at.in_atomic_block:
        raise transaction.TransactionManagementError("Writes can wait only inside of a transaction.")
    if any(isinstance(wrapper, Kept) for wrapper in at.execute_wrappers):
        yield
        return
    before, waiting = active(), Kept(at)
    _here.waiting = waiting
    try:
        with at.execute_wrapper(waiting):
            yield
            waiting.end()
    finally:
        _here.waiting = before


def active() -> Kept | None:
    """Where the calling thread's writes wait now; None if they do not."""
    return getattr(_here, "waiting", None)


def carry_out(given: Sequence[Given]) -> list[Result]:
    """Carry out statements, after whatever waits that they might see."""
    waiting = active()
    return waiting.carry_out(given) if waiting else statements.carry_out(given)


def hold(row: Model) -> None:
    """The transaction has locked this row, and the instance is as the row is (with what waits)."""
    if waiting := active():
        waiting.hold(row)


def held(model: type[M], pk: object) -> M | None:
    """The instance that is as its row is, and that nobody else can change until the transaction ends; None if none is
    known, and for whoever is not inside of `kept`."""
    waiting = active()
    return waiting.held(model, pk) if waiting else None


def is_held(row: Model) -> bool:
    """Whether this very instance is `held`."""
    return held(type(row), row.pk) is row


def changed(row: Model) -> None:
    """The row was changed by what this instance knows: another one that was held is so no longer."""
    if waiting := active():
        waiting.changed(row)


def at_end(act: Act[T], item: T, *asked: Question, key: Hashable = None) -> None:
    """Have `act` called at the end of `kept`, once for each `key` with all items that came under it, and the answers to
    what is `asked`, which is the same for all of these. Now, if nothing waits."""
    if waiting := active():
        waiting.at_end(act, item, asked, key)
        return
    results = statements.carry_out([one.given for one in asked])
    act([item], [one.read(result) for one, result in zip(asked, results, strict=True)])
