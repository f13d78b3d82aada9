"""Programs that the python3 of a remote host runs there: each imports nothing of Sortie, and goes
there as text."""

from __future__ import annotations

from importlib.resources import files


def text_of(name: str) -> str:
    """Return the text of one of them."""
    return files(__package__).joinpath(f"{name}.py").read_text()
