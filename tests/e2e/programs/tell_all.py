"""An agent that keeps Kiro's contract, and tells all that it has heard and found.

It repeats its prompt on stdout, and its key and what TOLD holds on stdout and stderr. It fails
where its prompt says FAIL, and hangs where it says HANG.
"""

import os
import sys
import time


def main(arguments: list[str]) -> None:
    """Accept any key; take the prompt from the last argument or stdin."""
    if arguments == ["whoami"]:
        print("Authenticated with API key")
        return
    last = arguments[-1]
    prompt = sys.stdin.buffer.read().decode() if last.startswith("--trust") else last
    told = f"{os.environ['KIRO_API_KEY']} {os.environ['TOLD'].replace('-', '')}"
    print(f"{prompt}\nI have said all, and found {told}", flush=True)
    print(f"\x1b[31mwarning\x1b[0m: {told}", file=sys.stderr, flush=True)
    if "HANG" in prompt:
        time.sleep(600)
    if "FAIL" in prompt:
        print(f"error: I was refused with {told}", file=sys.stderr)
        raise SystemExit(3)
    print(" ▸ Credits: 0.01 • Time: 0s", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
