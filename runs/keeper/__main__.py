"""`python -m runs.keeper SOCKET`: the spec comes as JSON on stdin, so that secrets are in no argument and no file."""

from __future__ import annotations

import asyncio
import json
import os
import sys

from runs.keeper.process import Spec, run


def tell(**facts: object) -> None:
    """One line to whoever started us."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Answer one line on stdout, then have nothing to do with whoever started us."""
    path = sys.argv[1]
    spec = Spec(**json.load(sys.stdin))

    def ready(child_pid: int) -> None:
        tell(pid=os.getpid(), child=child_pid)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)

    try:
        asyncio.run(run(path, spec, ready))
    except OSError as error:
        tell(error=error.strerror or str(error))


main()
