"""``sortie`` that cannot list its own children, as on other systems: see ``main``."""

import sys

from sortie.cli import main as sortie
from sortie.transports.local import observer


def main() -> int:
    """Be the program named by the arguments; who is left of a command is told by everybody."""
    sys.argv.pop(0)
    vars(observer)["own_children"] = lambda: None
    return sortie() or 0


if __name__ == "__main__":
    sys.exit(main())
