"""Run the command line as ``python -m sortie``."""

from sortie.cli import main

if __name__ == "__main__":
    main()
