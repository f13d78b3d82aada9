"""What two workflows of one process must not have in common."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sortie.config.settings import Settings
from sortie.model import LOCAL


def conflict(name: str, settings: Settings, others: Mapping[str, Settings]) -> str | None:
    """Say what a workflow has that another one has already, None where there is nothing."""
    for other, theirs in others.items():
        if settings.store.url is not None and settings.store == theirs.store:
            return (
                f"the workflows {other} and {name} have the same database on a server; give each"
                " one a schema of its own, with store.schema"
            )
        if os.path.realpath(settings.db_path) == os.path.realpath(theirs.db_path):
            return (
                f"the workflows {other} and {name} have the same database, {settings.db_path}; give"
                " each one of its own, with db_path"
            )
        for host in _roots(settings).keys() & _roots(theirs).keys():
            ours, root = _roots(settings)[host], _roots(theirs)[host]
            if _overlap(ours, root):
                where = "" if host == LOCAL else f" on {host}"
                return (
                    f"the workspace roots of {other} and {name} overlap{where}: {root} and {ours};"
                    " give each one of its own, with workspace.root"
                )
        shared = _namespaces(settings) & _namespaces(theirs)
        if shared:
            host, instance = min(shared)
            return (
                f"the workflows {other} and {name} have the same pods on {host}: both are the"
                f" instance {instance}; give each one a worker.kubernetes.instance of its own"
            )
        if settings.isolation != theirs.isolation:
            return (
                f"isolation is {theirs.isolation} for {other} and {settings.isolation} for {name};"
                " it is the same for all workflows of a process"
            )
    return None


def _roots(settings: Settings) -> dict[str, str]:
    """Return the workspace root on each host; each pod has one of its own."""
    if settings.worker.kubernetes is not None:
        return {}
    if settings.worker.hosts:
        return dict.fromkeys(settings.worker.hosts, os.path.normpath(settings.remote_root))
    return {LOCAL: os.path.realpath(settings.workspace.root)}


def _namespaces(settings: Settings) -> set[tuple[str, str]]:
    """Return the hosts on which a workflow has pods, with what tells them from those of others."""
    pods = settings.worker.kubernetes
    return set() if pods is None else {(host, pods.instance) for host in settings.worker.hosts}


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")
