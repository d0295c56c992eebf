"""One pattern match in a process of its own, which the operating system ends when it takes too long.

Run as `python -I -S pattern_child.py <folder of the regress package>`, never imported. Reads
{"pattern", "text"} as JSON on stdin and writes {"match": bool} or {"problem": text}. The limits are on
processor time and memory, not on the clock, so a busy machine does not turn a good answer into a refusal.
"""

from __future__ import annotations

import json
import resource
import sys

CPU_SECONDS = 1
MEMORY_BYTES = 512 * 1024 * 1024


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.path.insert(0, sys.argv[1])
    import regress

    job = json.load(sys.stdin.buffer)
    answer: dict[str, bool | str]
    try:
        compiled = regress.Regex(job["pattern"], job["flags"])
        answer = {"match": compiled.find(job["text"]) is not None}
    except regress.RegressError as error:
        answer = {"problem": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
