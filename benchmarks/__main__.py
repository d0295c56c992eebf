"""`python -m benchmarks [NAME ...] [--record FILE]`: run all or the named benchmarks and print their tables."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    answer_to_line,
    api,
    inbox_push,
    machine,
    parked,
    pause_to_card,
    policies,
    resume_latency,
    throughput,
)
from benchmarks.figures import Report

BENCHMARKS: dict[str, Callable[[Path, float], Report]] = {
    "pause_to_card": pause_to_card.run,
    "answer_to_line": answer_to_line.run,
    "parked": parked.run,
    "inbox_push": inbox_push.run,
    "policies": policies.run,
    "api": api.run,
    "resume_latency": resume_latency.run,
    "throughput": throughput.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description="Print ratios; M3_BENCH_SCALE scales the repeats."
    )
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"any of {', '.join(BENCHMARKS)}; all by default"
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE", help="also write the figures to this Markdown file"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - BENCHMARKS.keys():
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    scale = _scale(parser)
    parts = [f"# Benchmarks, scale {scale:g}", machine.describe()]
    print("\n\n".join(parts), flush=True)
    for name in options.names or BENCHMARKS:
        print(f"\n({name} is running...)", file=sys.stderr, flush=True)
        with tempfile.TemporaryDirectory(prefix="m3-bench-") as folder:
            parts.append(str(BENCHMARKS[name](Path(folder), scale)))
        print(f"\n{parts[-1]}", flush=True)
    if options.record:
        options.record.write_text("\n\n".join(parts) + "\n")


def _scale(parser: argparse.ArgumentParser) -> float:
    """M3_BENCH_SCALE: 1 is the full size, 0.1 a tenth of its repeats and runs."""
    raw = os.environ.get("M3_BENCH_SCALE", "1")
    try:
        scale = float(raw)
    except ValueError:
        scale = 0.0
    if not 0 < scale <= 100:
        parser.error(f"M3_BENCH_SCALE={raw!r} is not a number above 0, at most 100")
    return scale


if __name__ == "__main__":
    main()
