"""What the authors of adapters hold theirs to; see ``python -m sortie.testing.agent --help``."""
