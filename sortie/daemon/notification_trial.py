"""Tries the targets of notifications with a message that tells of nothing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from uuid import uuid4

import trio
from msgspec import Struct

from sortie.daemon.notification_service import opened_channel
from sortie.daemon.options import RunOptions
from sortie.daemon.secrets_in_settings import secrets_of
from sortie.daemon.workflow_file import load_workflow
from sortie.model import SortieError
from sortie.model.notifications import TEST, Notice
from sortie.model.secrets import redactor
from sortie.notifications.channel import TargetChannel
from sortie.notifications.texts import dashboard_link
from sortie.store.outbox import Outgoing


class TriedTarget(Struct, frozen=True, kw_only=True):
    """What came of a try, for people; no secret is in it."""

    target: str
    ok: bool
    said: str


def try_targets(options: RunOptions, name: str | None) -> Sequence[TriedTarget]:
    """Send a message to each target, or to the one of a name, and return what came of it.

    Raises SortieError for a name that no target has, and WorkflowError.
    """
    workflow = load_workflow(options)
    settings = workflow.settings
    targets = [one for one in settings.notifications if name in (None, one.name)]
    if name is not None and not targets:
        names = ", ".join(str(one.name) for one in settings.notifications) or "none"
        raise SortieError(f"no target has the name {name}; there are: {names}")
    link = dashboard_link(settings.server.public_url, None)
    told = Notice(
        key=f"{TEST}:{uuid4().hex}",
        event=TEST,
        title="A test of Sortie's notifications",
        text="Somebody tried whether messages arrive here. Nothing has to be done.",
        links=() if link is None else (("Dashboard", link),),
    )
    outgoing = Outgoing(id=0, notification=told, created_at=time.time())
    redact = redactor(secrets_of(settings).values)
    directory = workflow.path.absolute().parent.name

    async def main() -> list[TriedTarget]:
        found = []
        for target in targets:
            ok, said = await _tried(opened_channel(target, directory, time.time), outgoing)
            found.append(TriedTarget(target=target.name or "", ok=ok, said=redact(said)))
        return found

    return trio.run(main)


async def _tried(
    channel: AbstractAsyncContextManager[TargetChannel], outgoing: Outgoing
) -> tuple[bool, str]:
    try:
        async with channel as opened:
            return True, await opened.send([outgoing])
    except SortieError as exc:
        return False, str(exc)
