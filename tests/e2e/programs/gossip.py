"""An agent that keeps Kiro's contract, prints secrets that it was never given, and stays a while.

``gossip.json`` above its workspaces holds what it prints, each text in a write of its own and
backwards, so that the file holds no secret; then it waits for the file ``go`` there.
"""

import json
import os
import sys
import time
from pathlib import Path

ABOVE = Path("../..")


def main(arguments: list[str]) -> None:
    """Accept any key, say it all, and succeed when that is wanted."""
    if arguments == ["whoami"]:
        print("Authenticated with API key")
        return
    for number in (1, 2):
        for text in json.loads((ABOVE / "gossip.json").read_text()):
            os.write(number, text[::-1].encode())
            time.sleep(0.01)
    while not (ABOVE / "go").exists():
        time.sleep(0.02)
    print("that was all")
    print(" ▸ Credits: 0.01 • Time: 0s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
