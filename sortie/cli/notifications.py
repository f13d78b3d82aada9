"""``sortie notifications``: what waits to be told, what was given up, and whether targets work."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import EnvFile, OutputFormat, Source, WorkflowOption
from sortie.cli.format import utc
from sortie.cli.output import Format, columns, emit, emit_json, emit_line, note, one_line
from sortie.cli.parameters import WrongUsage, argument, option
from sortie.model import SortieError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sortie.cli.output import Json
    from sortie.store.outbox import ListedNotification

_COLUMNS = ("id", "since", "state", "target", "tries", "what", "error")
_SHOWN = 1000
_ID_DIGITS = 15


class NotificationsAction(StrEnum):
    """What to do."""

    LIST = "list"
    SEND = "send"
    TEST = "test"


def notifications(
    action: Annotated[
        NotificationsAction,
        argument(help="List what is not sent, send again what was given up, or try the targets."),
    ] = NotificationsAction.LIST,
    notification: Annotated[
        str | None, argument(metavar="ID", help="With send: the number of a notification.")
    ] = None,
    workflow: WorkflowOption = None,
    env_file: EnvFile = None,
    dead: Annotated[bool, option("--dead", help="List only those that were given up.")] = False,
    all_dead: Annotated[
        bool, option("--all-dead", help="With send: all that were given up.")
    ] = False,
    target: Annotated[
        str | None, option(metavar="NAME", help="With test: this target alone.")
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> int | None:
    """List the notifications that wait or were given up, send them again, or try the targets.

    A notification is given up when its target has refused it, or could not be told for give_up_ms.
    With send, the running daemon sends it again. With test, this command itself sends a message to
    each target, whatever the hour, and tells what came back; it fails where one could not be told.
    """
    source = Source(option=workflow, env_file=env_file)
    source.require()
    if target is not None and action is not NotificationsAction.TEST:
        raise WrongUsage("goes with test", parameter="--target")
    match action:
        case NotificationsAction.SEND:
            if (notification is None) != all_dead:
                raise WrongUsage("send needs a number, or --all-dead", parameter="ID")
            _send(source, notification, output)
        case _ if notification is not None or all_dead:
            raise WrongUsage("goes with send", parameter="ID")
        case NotificationsAction.TEST:
            return _test(source, target, output)
        case _:
            _list(source, output, dead=dead)
    return None


def _list(source: Source, output: Format, *, dead: bool) -> None:
    from sortie.cli.discovery import locate
    from sortie.store.readonly import read_notifications

    found = read_notifications(locate(source).database, "dead" if dead else None, _SHOWN)
    if output is Format.JSON:
        emit_json([_row(one) for one in found])
        return
    if not found:
        note("no notification was given up" if dead else "no notification waits or was given up")
        return
    emit(_listing(found))
    if len(found) == _SHOWN:
        note(f"these are the oldest {_SHOWN}")


def _listing(found: Sequence[ListedNotification]) -> str:
    from sortie.cli.tables import Row, table

    rows = [
        Row(
            [
                str(one.id),
                utc(_time(one.created_at)),
                one.state,
                one.target,
                str(one.tries),
                one_line(one.title),
                one_line(one.error or ""),
            ]
        )
        for one in found
    ]
    return table(_COLUMNS, rows, columns())


def _row(one: ListedNotification) -> Json:
    from sortie.model.times import rfc3339

    return {
        "id": one.id,
        "key": one.key,
        "state": one.state,
        "target": one.target,
        "event": one.event,
        "issue": one.issue,
        "title": one.title,
        "created_at": rfc3339(_time(one.created_at)),
        "tries": one.tries,
        "may_have_arrived": one.unsure,
        "error": one.error,
        "given_up_at": None if one.ended_at is None else rfc3339(_time(one.ended_at)),
    }


def _time(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _send(source: Source, notification: str | None, output: Format) -> None:
    from sortie.cli.client import command
    from sortie.cli.discovery import locate

    path = "/api/v1/notifications/send-dead"
    if notification is not None:
        if not (notification.isascii() and notification.isdigit()):
            raise WrongUsage("needs the number of a notification", parameter="ID")
        path = f"/api/v1/notifications/{notification[:_ID_DIGITS]}/send"
    answer = command(locate(source), "send it again", path)
    if output is Format.JSON:
        emit_json({"message": answer.message})
    else:
        emit_line(answer.message or "done")


def _test(source: Source, name: str | None, output: Format) -> int:
    from sortie.daemon.notification_trial import try_targets

    found = try_targets(source.options(), name)
    if not found:
        raise SortieError("the workflow file names no target under notifications")
    if output is Format.JSON:
        emit_json([{"target": one.target, "ok": one.ok, "message": one.said} for one in found])
    else:
        for one in found:
            emit_line(f"{one.target}: {'ok' if one.ok else 'failed'}: {one_line(one.said)}")
    return 0 if all(one.ok for one in found) else 1
