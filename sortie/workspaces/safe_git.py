"""Scripts that ask git about trees of agents, and run nothing that the trees name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from sortie.transports import Script

_SAFELY = "safe_git"


def git_script(
    name: str,
    *,
    purpose: str,
    cwd: str,
    env: Mapping[str, str],
    limit: int,
    arguments: tuple[str, ...] = (),
) -> Script:
    """Return the script of this name in ``sh``, which asks git by ``git_here`` alone."""
    text = script_text(name)
    return Script(purpose=purpose, text=text, arguments=arguments, cwd=cwd, env=env, limit=limit)


def script_text(*names: str) -> str:
    """Return the scripts of these names as one, behind what defines ``git_here``."""
    return "\n".join(map(_text, (_SAFELY, *names)))


@cache
def _text(name: str) -> str:
    """Return a script without its comments."""
    lines = files(__package__).joinpath("sh", f"{name}.sh").read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))
