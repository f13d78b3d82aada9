"""A program that writes its pid to a file descriptor and stays until it is killed."""

import os
import signal
import subprocess
import sys


def main(tell: int, words: list[str]) -> None:
    """Stay; as the first of three generations where ``tree`` is among the words."""
    if "ignore" in words:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    depth = 3 if "tree" in words else int(words[0]) if words and words[0].isdigit() else 1
    rest = [word for word in words if word != "tree" and not word.isdigit()]
    if depth > 1:
        subprocess.Popen(
            [sys.executable, __file__, str(tell), str(depth - 1), *rest],
            pass_fds=(tell,),
            start_new_session=True,
        )
    os.write(tell, b"%d\n" % os.getpid())
    os.close(tell)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
