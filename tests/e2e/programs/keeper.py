"""An agent that keeps Kiro's contract, and writes down in its directory what it was given.

It takes KEEPER_SECONDS, and does what it should not: it prints its key.
"""

import json
import os
import sys
import time
from pathlib import Path

GIVEN = "given.json"


def main(arguments: list[str]) -> None:
    """Accept any key; take the prompt from the last argument or stdin, and succeed."""
    if arguments == ["whoami"]:
        print("Authenticated with API key")
        return
    last = arguments[-1]
    prompt = sys.stdin.buffer.read().decode() if last.startswith("--trust") else last
    environ = dict(os.environ)
    key = environ.pop("KIRO_API_KEY")
    given = {"arguments": arguments, "prompt": prompt, "environ": environ}
    time.sleep(float(environ.get("KEEPER_SECONDS", "0")))
    Path(GIVEN).write_text(json.dumps(given), encoding="utf-8")
    print(f"I wrote down what I was given, but for {key}.")
    print(f"warning: {key} is a secret\n ▸ Credits: 0.01 • Time: 0s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
