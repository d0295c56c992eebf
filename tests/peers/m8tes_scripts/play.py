"""Play one function of these scripts with a client, in the environment of the SDK (tests/peers/m8tes.txt).

`play.py MODULE FUNCTION JSON`: the keyword arguments as JSON; prints, as its last line, what the function returns as
JSON. Address and key come from the environment, as the SDK wants them.
"""

from __future__ import annotations

import importlib
import json
import sys

from m8tes import M8tes


def main() -> None:
    module, function, arguments = sys.argv[1:]
    result = getattr(importlib.import_module(module), function)(M8tes(), **json.loads(arguments))
    print(f"\n{json.dumps(result)}")


if __name__ == "__main__":
    main()
