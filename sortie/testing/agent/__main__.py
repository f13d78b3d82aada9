"""``python -m sortie.testing.agent``: hold an adapter and its program to the port's promises."""

from sortie.testing.agent.command import main

if __name__ == "__main__":
    main()
