"""A login that hears out our script and then talks without end; see ``main``."""

import os
import re
import sys
from contextlib import suppress

_CHUNK = b"x" * 65536


def main(saying: str) -> None:
    """Say what ``saying`` begins with, ``%s`` being the nonce, and go on for ever.

    A ``*`` at its end has its last line repeated instead. ``2:`` at its beginning sends it to
    stderr.
    """
    script = b""
    while (found := re.search(rb"nonce='([^']*)'", script)) is None:
        script += os.read(0, 65536)
    fd = 2 if saying.startswith("2:") else 1
    words = saying.removeprefix("2:").encode().decode("unicode_escape").encode()
    words = words.replace(b"%s", found[1])
    repeated = _CHUNK
    if words.endswith(b"*"):
        words, _, repeated = words[:-1].rpartition(b"|")
        repeated = repeated * 1000
    with suppress(BrokenPipeError):
        os.write(fd, words)
        while True:
            os.write(fd, repeated)


if __name__ == "__main__":
    main(sys.argv[1])
