"""What a file looks like: JSON Lines. A head, one line per row, and an end that proves that nothing is missing or
changed.

A file is read as a stream, twice: once to check it before the database is touched, once for its rows.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

from m3web.moving.refusals import Refused
from m3web.moving.secrets import Secrets

KIND: Final = "m3web account"
FORMAT: Final = 1

MAX_LINE: Final = 64 * 2**20
"""Bytes of one row; what is read of an unknown file at once."""

_DAMAGED: Final = "{} is damaged: {}. Nothing was imported. Export the account again, or copy the file again."


@dataclass(frozen=True, kw_only=True)
class Head:
    """The first line."""

    product: str
    migrations: Mapping[str, list[str]]
    """The newest migrations of our apps: what the columns mean."""
    account: int
    slug: str
    name: str
    purpose: Literal["handover", "copy"]
    """Whether the account was closed where it comes from, or goes on there."""
    at: str
    rows: Mapping[str, int]
    """How many of each table follow."""
    sequences: Mapping[str, int]
    """The highest id that each table has given away, also to rows that are gone."""


class Writer:
    """Writes a new file that its owner alone can read. It has its name only once it is complete and on disk."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self._path, self._secrets = path, secrets
        self._draft = path.with_name(f".{path.name}.part")
        self._digest = hashlib.sha256()
        self._rows: Counter[str] = Counter()

    def __enter__(self) -> Writer:
        if self._path.exists():
            raise Refused(f"{self._path} is there already. Choose another name, or remove it.")
        with self._on_disk():
            self._file = os.fdopen(self._open_draft(), "wb")
        return self

    def _open_draft(self) -> int:
        """A file of our own: what somebody has put in its place, a link say, is neither followed nor written to."""
        try:
            return os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            raise Refused(
                f"{self._draft} is there already: another export to this name is at work, or one was cut off. "
                "Wait for it, or remove that file."
            ) from None

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is None:
            self._file.close()
            return
        with contextlib.suppress(OSError):  # closing writes what is left, which fails again on a full disk
            self._file.close()
        self._draft.unlink(missing_ok=True)

    def head(self, head: Head) -> None:
        self._expected = dict(head.rows)
        self._line({"kind": KIND, "format": FORMAT, **asdict(head)})

    def row(self, label: str, columns: Mapping[str, Any]) -> None:
        self._rows[label] += 1
        self._line([label, columns])

    def finish(self) -> str:
        """Write the end and give the file its name; returns its digest. Raises Refused if the disk is full."""
        if self._rows != Counter(self._expected):
            raise RuntimeError(f"wrote {dict(self._rows)} where {self._expected} were counted")
        digest = self._digest.hexdigest()
        self._line({"end": KIND, "sha256": digest, "seal": self._secrets.seal(digest)})
        with self._on_disk():
            self._file.flush()
            os.fsync(self._file.fileno())
            self._draft.rename(self._path)
            try:
                self._keep_name()
            except OSError:
                self._path.unlink()  # whoever called goes on as if it had never been there
                raise
        return digest

    def _keep_name(self) -> None:
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _line(self, value: Any) -> None:
        line = json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"
        if len(line) > MAX_LINE:
            raise Refused(f"A row needs {len(line)} bytes; at most {MAX_LINE} can be moved.")
        self._digest.update(line)
        with self._on_disk():
            self._file.write(line)

    @contextlib.contextmanager
    def _on_disk(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Refused(f"{self._path} cannot be written: {error.strerror}.") from error


class Reader:
    """Reads a file that may be anything."""

    def __init__(self, path: Path, secrets: Secrets) -> None:
        self._path, self._secrets = path, secrets
        self.digest = ""
        """Of the file as it was checked."""

    def check(self) -> Head:
        """The head of a file that is complete, unchanged and written with these secrets. Raises Refused."""
        with self._lines() as lines:
            head = self._head(lines)
            for _ in self._rows(lines, head):
                pass
            self.digest = self._before
        return head

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Every row with the label of its table. Raises Refused at the end if the file is not the one that was
        checked, so exhaust this before a commit."""
        with self._lines() as lines:
            yield from self._rows(lines, self._head(lines))
            if self._before != self.digest:
                raise self._damaged("it was changed while it was read")

    @contextlib.contextmanager
    def _lines(self) -> Iterator[Iterator[Any]]:
        self._digest = hashlib.sha256()
        self._before = ""
        try:
            with self._path.open("rb") as file:
                yield self._parsed(file)
        except OSError as error:
            raise Refused(f"{self._path} cannot be read: {error.strerror}.") from error

    def _parsed(self, file: BinaryIO) -> Iterator[Any]:
        while line := file.readline(MAX_LINE + 1):
            self._before = self._digest.hexdigest()
            self._digest.update(line)
            if not line.endswith(b"\n"):
                raise self._damaged("its last line is cut off")
            try:
                yield json.loads(line)
            except (ValueError, RecursionError) as error:
                raise self._damaged("a line of it is no JSON") from error

    def _head(self, lines: Iterator[Any]) -> Head:
        first = next(lines, None)
        if not isinstance(first, dict) or first.get("kind") != KIND:
            raise Refused(f"{self._path} is no exported account.")
        if first.get("format") != FORMAT:
            raise Refused(
                f"{self._path} has the format {first.get('format')!r} of version {first.get('product')!r}. "
                f"This version reads format {FORMAT}. Import it with the version that wrote it."
            )
        try:
            return Head(**{field.name: first[field.name] for field in fields(Head)})
        except KeyError as error:
            raise self._damaged(f"its head lacks {error}") from error

    def _rows(self, lines: Iterator[Any], head: Head) -> Iterator[tuple[str, dict[str, Any]]]:
        found: Counter[str] = Counter()
        for line in lines:
            if isinstance(line, dict):
                return self._end(line, lines, found == Counter(dict(head.rows)))
            match line:
                case [str(label), dict(columns)]:
                    found[label] += 1
                    yield label, columns
                case _:
                    raise self._damaged("a line of it is no row")
        raise self._damaged("its end is missing")

    def _end(self, end: dict[str, Any], lines: Iterator[Any], complete: bool) -> None:
        digest = self._before
        if end.get("sha256") != digest or not complete or next(lines, None) is not None:
            raise self._damaged("it is not as it was written")
        if not hmac.compare_digest(str(end.get("seal")).encode(), self._secrets.seal(digest).encode()):
            raise Refused(
                f"{self._path} was written with another M3_SECRET_KEY or M3_ENCRYPTION_SALT than this installation "
                "has. Give this one the same two, or name a folder with the other's two files: --secrets FOLDER."
            )

    def _damaged(self, what: str) -> Refused:
        return Refused(_DAMAGED.format(self._path, what))
