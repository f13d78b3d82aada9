"""What a daemon of an earlier version has left: that was named by the path of its database."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sortie.config import Settings
from sortie.facts import OrphansReaped
from sortie.model import TransportError
from sortie.telemetry.log.sink import LogSink
from sortie.transports.local import LocalTransport, RunGroups, mark_of_database


async def ended_by_path(settings: Settings, environ: Mapping[str, str]) -> bool:
    """End all that carries the mark or lives in a cgroup of the path of the database; return
    whether nothing of it is left.

    Done once, by the first daemon that names by the id: the path alone may be another database's
    too, in another mount namespace.
    """
    mark = mark_of_database(os.path.realpath(settings.db_path))
    groups = RunGroups.open(f"sortie-{mark:x}")
    transport = LocalTransport(environ.get("PATH", ""), mark=mark, groups=groups)
    try:
        count = await transport.sweep((), grace=settings.agent.stop_grace)
    except TransportError:
        return False  # recovery names those that stay; the next start looks again
    finally:
        await transport.close()
    if count:
        LogSink()(OrphansReaped(where="local", count=count))
    return True
