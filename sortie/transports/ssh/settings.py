"""How remote hosts are reached: ``worker.ssh_*`` of WORKFLOW.md, and the daemon's own means."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Strictness = Literal["accept-new", "yes", "no", "look"]
"""``look`` is as ``accept-new``, and remembers nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """What holds for every host and every hop; it beats what ssh_config says.

    ``config``, ``known_hosts`` and ``identity_files`` are paths; None and empty mean the user's.
    ``agent`` is the socket of the daemon's ssh-agent, ``search_path`` where ``ssh`` is looked for.
    ``environ`` is what ``ssh`` and a ProxyCommand are given; None is all of the daemon's.
    """

    strict: Strictness = "accept-new"
    config: str | None = None
    known_hosts: str | None = None
    identity_files: tuple[str, ...] = ()
    agent: str | None = None
    search_path: str = os.defpath
    environ: Mapping[str, str] | None = field(default=None, repr=False, compare=False)
