"""Keep other processes of the daemon's own user from looking into it.

Agents run as the same user. Without this they could read the daemon's memory and environment, and
with them every credential that the daemon has and hides from them.
"""

from __future__ import annotations

from sortie.resources.prctl import prctl

_PR_SET_DUMPABLE = 4


def forbid_inspection() -> bool:
    """Let nobody but root trace this process, read its memory or environment, or dump its core.

    Return whether that is so; only Linux has this. What this process starts is free of it: the
    start of another program ends it (prctl(2), PR_SET_DUMPABLE).
    """
    call = prctl()
    return call is not None and call(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0
