"""Parked runs in bulk, and what they weigh: a process of its own, because settings are read once.

`M3_DATA_DIR=... python -m benchmarks.parked_rows fill RUN COUNT` copies a run that waits for a person, with all its
rows, until COUNT runs wait: a worker would need an hour for what the database does in half a minute. `sweep TIMES`
prints the milliseconds of a sweep, `sizes` the bytes of each table and its indexes.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from typing import Any

TABLES = ("run", "turn", "step", "round", "event")
"""What a parked run of the prepared agents consists of."""

_NUMBERS = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count})"


def copy(template: int, count: int) -> None:
    """Copy the run `template` until `count` pauses wait; every tenth copy has a deadline, beyond a day.

    The copies differ where indexes look: in ids and times.
    """
    from django.db import connection
    from django.db.models import Max

    from runs.models import Event, Round, Run, Step, Turn

    postgres = connection.vendor == "postgresql"
    last = Run.objects.aggregate(last=Max("pk"))["last"]
    missing = count - Round.objects.pending().count()
    new_uuid, new_id = ("gen_random_uuid()", "md5(random()::text || t.run_id)")
    if not postgres:
        new_uuid = new_id = "lower(hex(randomblob(16)))"
    born = {
        name: _earlier(f"o.{name}", "t.run_id", postgres=postgres) for name in ("created_at", "updated_at")
    }
    of_turn = f"JOIN runs_turn t ON t.run_id > {last}"
    in_turn = {"run_id": "t.run_id", "turn_id": "t.id"}
    deadline = f"CASE WHEN t.run_id % 10 = 0 THEN {_later('o.created_at', 't.run_id', postgres=postgres)} END"
    with connection.cursor() as cursor:
        numbered = f"(SELECT {last} + n AS run_id FROM n) t"
        run = {"id": "t.run_id", **born}
        _insert(
            cursor, Run, run, f"CROSS JOIN {numbered}", f"o.id = {template}", _NUMBERS.format(count=missing)
        )
        numbered = f"JOIN (SELECT id AS run_id FROM runs_run WHERE id > {last}) t ON true"
        turn = {"id": new_uuid, "run_id": "t.run_id", "created_at": born["created_at"]}
        _insert(cursor, Turn, turn, numbered, f"o.run_id = {template}")
        _insert(cursor, Step, {"id": "", **in_turn}, of_turn, f"o.run_id = {template}")
        event = {"id": "", **in_turn, "turn_id": "CASE WHEN o.turn_id IS NULL THEN NULL ELSE t.id END"}
        _insert(cursor, Event, event, of_turn, f"o.run_id = {template}")
        asked = (
            "JOIN runs_step a ON a.id = o.step_id JOIN runs_step s ON s.run_id = t.run_id AND s.seq = a.seq"
        )
        round_ = {"id": new_id, **in_turn, "step_id": "s.id", "deadline": deadline, **born}
        _insert(cursor, Round, round_, f"{of_turn} {asked}", f"o.run_id = {template}")
        if postgres:
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence('runs_run', 'id'), (SELECT max(id) FROM runs_run))"
            )


def fill(template: int, count: int) -> None:
    """`copy` as quickly as may be. Foreign keys are right by construction, so PostgreSQL is spared checking each of
    them, and is told to tidy up as its autovacuum would do within a minute."""
    from django.db import connection, transaction

    postgres = connection.vendor == "postgresql"
    with transaction.atomic(), connection.cursor() as cursor:
        if postgres:
            cursor.execute("SET LOCAL session_replication_role = replica")
        copy(template, count)
    if postgres:
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def _insert(
    cursor: Any, model: Any, changed: Mapping[str, str], source: str, where: str, beginning: str = ""
) -> None:
    """Rows of `model` from those called o, with other expressions for the `changed` columns; "" leaves one out."""
    columns = [field.column for field in model._meta.concrete_fields]
    values = {column: changed.get(column, f'o."{column}"') for column in columns}
    values = {column: value for column, value in values.items() if value}
    names = ", ".join(f'"{column}"' for column in values)
    table = model._meta.db_table
    cursor.execute(
        f'INSERT INTO "{table}" ({names}) {beginning} SELECT {", ".join(values.values())} '
        f'FROM "{table}" o {source} WHERE {where}'
    )


def _earlier(column: str, seconds: str, *, postgres: bool) -> str:
    return _moved(column, f"-({seconds})", postgres=postgres)


def _later(column: str, seconds: str, *, postgres: bool) -> str:
    return _moved(column, f"(86400 + {seconds})", postgres=postgres)


def _moved(column: str, seconds: str, *, postgres: bool) -> str:
    if postgres:
        return f"{column} + {seconds} * interval '1 second'"
    return f"strftime('%Y-%m-%d %H:%M:%f', {column}, {seconds} || ' seconds')"


def sweep(times: int) -> dict[str, list[float]]:
    from runs import db
    from runs.worker.deadlines import sweep as look

    async def measured() -> list[float]:
        took = []
        for _ in range(times):
            started = time.perf_counter()
            await db.write(look)
            took.append((time.perf_counter() - started) * 1000)
        return took

    import asyncio

    found = asyncio.run(measured())
    db.close_threads()
    return {"sweep": found}


def sizes() -> dict[str, Any]:
    """Bytes of the whole database; on PostgreSQL also of each table, without and with what its indexes take."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            cursor.execute("SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()")
            return {"database": cursor.fetchone()[0]}
        cursor.execute("SELECT pg_database_size(current_database())")
        found: dict[str, Any] = {"database": cursor.fetchone()[0]}
        for name in TABLES:
            table = f"runs_{name}"
            cursor.execute(
                f"SELECT pg_table_size('{table}'), pg_indexes_size('{table}'), count(*) FROM {table}"
            )
            found[table] = dict(zip(("table", "indexes", "rows"), cursor.fetchone(), strict=True))
        cursor.execute(
            "SELECT indexrelname, pg_relation_size(indexrelid) FROM pg_stat_user_indexes WHERE relname = ANY(%s)",
            [[f"runs_{name}" for name in TABLES]],
        )
        found["indexes"] = dict(cursor.fetchall())
        return found


def main(what: str, *numbers: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "m3web.settings")
    import django

    django.setup()
    commands: dict[str, Any] = {"fill": fill, "sweep": sweep, "sizes": sizes}
    print(json.dumps(commands[what](*map(int, numbers))))


if __name__ == "__main__":
    main(*sys.argv[1:])
