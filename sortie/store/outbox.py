"""The outbox: notifications on their way to targets, and those that are given up.

Rule 1: a notification that is about to be sent is marked as one that may have arrived, on disk and
first. What came of it is on disk before it counts as sent.
Rule 2: what waits for a target is tried in the order in which it was recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, Protocol, TypeVar

import msgspec
from msgspec import Struct

from sortie.model import cut
from sortie.model.notifications import Notice
from sortie.store.database import Database, Row
from sortie.store.rows import rows_of

T = TypeVar("T")

NotificationState = Literal["waiting", "sent", "dead"]


class Outgoing(Struct, frozen=True, kw_only=True):
    """A notification for one target, as it was before the try that is to be made now.

    ``tries`` were made before; ``unsure``: one of them may have arrived.
    """

    id: int
    notification: Notice
    created_at: float
    tries: int = 0
    unsure: bool = False


class TryResult(Struct, frozen=True, kw_only=True):
    """What came of a try; see the columns of the table."""

    id: int
    state: NotificationState
    tries: int
    unsure: bool
    error: str | None = None


class OpenNotifications(Struct, frozen=True, kw_only=True):
    """How many notifications for a target wait or are dead, the oldest since when."""

    target: str
    state: NotificationState
    count: int
    oldest: float


class ListedNotification(Struct, frozen=True, kw_only=True):
    """A notification that waits or is dead, as people look at it; times are Unix seconds."""

    id: int
    key: str
    target: str
    event: str
    title: str
    issue: str | None
    created_at: float
    state: NotificationState
    tries: int
    unsure: bool
    error: str | None
    ended_at: float | None


class JobStore(Protocol):
    """A store that does jobs with its database."""

    async def change(self, job: Callable[[Database], T], /) -> T:
        """Do a job that writes."""
        ...

    async def read(self, job: Callable[[Database], T], /) -> T:
        """Do a job that only reads."""
        ...


class Outbox:
    """The notifications of a store. Methods raise StoreError; times are Unix seconds."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    async def turn(
        self, target: str, results: Sequence[TryResult], limit: int, event: str | None, at: float
    ) -> tuple[Outgoing, ...]:
        """Write what came of the last tries, and return what is to be tried next, marked as tried.

        With ``event`` only notifications of this kind are. One commit at most.
        """
        job = partial(_turn, target=target, results=tuple(results), limit=limit, event=event, at=at)
        return await self._store.change(job)

    async def give_up(self, target: str, before: float, error: str, at: float) -> int:
        """Let all that waits since ``before`` or longer be dead; return how many."""
        return await self._store.change(
            partial(_give_up, target=target, before=before, error=error, at=at)
        )

    async def first_waiting(self, target: str, event: str | None) -> float | None:
        """Return since when the first notification waits, None where none does."""
        return await self._store.read(partial(_first_waiting, target=target, event=event))

    async def open(self) -> tuple[OpenNotifications, ...]:
        """Count what waits and what is dead."""
        return await self._store.read(read_open)

    async def revive(self, number: int | None, at: float) -> int | str:
        """Let a dead notification, or all, wait again; return how many, or why one cannot be."""
        return await self._store.change(partial(_revive, number=number, at=at))

    async def is_known(self, key: str) -> bool:
        """Tell whether a notification of this key is on record for any target."""
        return await self._store.read(partial(_is_known, key=key))

    async def runs_between(self, since: float, until: float) -> dict[str, int]:
        """Count the runs that ended in a period, by status."""
        return await self._store.read(partial(_runs_between, since=since, until=until))

    async def forget(self, sent_before: float, dead_before: float, limit: int) -> int:
        """Delete up to ``limit`` old notifications; return how many."""
        job = partial(_forget, sent_before=sent_before, dead_before=dead_before, limit=limit)
        return await self._store.change(job)


def add_notification(
    database: Database, notification: Notice, targets: Sequence[str], at: float
) -> None:
    """Let a notification wait for each of the targets, within the caller's transaction."""
    text = json.dumps(msgspec.to_builtins(notification))
    issue = notification.issue
    for target in targets:
        database.change(
            "insert_notification",
            key=notification.key,
            target=target,
            event=notification.event,
            issue_id=None if issue is None else issue.id,
            notification=text,
            at=at,
        )


def read_open(database: Database) -> tuple[OpenNotifications, ...]:
    """Count what waits and what is dead."""
    return tuple(OpenNotifications(**row) for row in database.rows("open_notifications"))


def read_listed(
    database: Database, state: str | None, limit: int
) -> tuple[ListedNotification, ...]:
    """Return what waits or is dead, the oldest first; only one of both where ``state`` says so."""
    with rows_of(database):
        rows = database.rows("list_notifications", state=state, limit=limit)
        return tuple(map(_listed, rows))


def _listed(row: Row) -> ListedNotification:
    notification = _notification(row)
    return ListedNotification(
        id=row["id"],
        key=row["key"],
        target=row["target"],
        event=row["event"],
        title=notification.title,
        issue=None if notification.issue is None else notification.issue.identifier,
        created_at=row["created_at"],
        state=row["state"],
        tries=row["tries"],
        unsure=bool(row["unsure"]),
        error=row["error"],
        ended_at=row["ended_at"],
    )


def _notification(row: Row) -> Notice:
    return msgspec.convert(json.loads(row["notification"]), Notice)


def _turn(
    database: Database,
    target: str,
    results: Sequence[TryResult],
    limit: int,
    event: str | None,
    at: float,
) -> tuple[Outgoing, ...]:
    if not results and not database.rows(
        "waiting_notifications", target=target, event=event, limit=min(1, limit)
    ):
        return ()
    with database.transaction():
        for result in results:
            database.change(
                "settle_notification",
                id=result.id,
                state=result.state,
                tries=result.tries,
                unsure=int(result.unsure),
                error=None if result.error is None else cut(result.error),
                ended_at=None if result.state == "waiting" else at,
            )
        rows = database.rows("waiting_notifications", target=target, event=event, limit=limit)
        for row in rows:
            database.change("try_notification", id=row["id"])
    with rows_of(database):
        return tuple(map(_outgoing, rows))


def _outgoing(row: Row) -> Outgoing:
    return Outgoing(
        id=row["id"],
        notification=_notification(row),
        created_at=row["created_at"],
        tries=row["tries"],
        unsure=bool(row["unsure"]),
    )


def _give_up(database: Database, target: str, before: float, error: str, at: float) -> int:
    with database.transaction():
        return database.change(
            "give_up_notifications", target=target, before=before, error=cut(error), at=at
        )


def _first_waiting(database: Database, target: str, event: str | None) -> float | None:
    rows = database.rows("waiting_notifications", target=target, event=event, limit=1)
    return float(rows[0]["created_at"]) if rows else None


def _revive(database: Database, number: int | None, at: float) -> int | str:
    with database.transaction():
        if number is None:
            return database.change("revive_notifications", at=at)
        if database.change("revive_notification", id=number, at=at):
            return 1
    found = database.rows("notification_state", id=number)
    if not found:
        return f"there is no notification {number}"
    return f"notification {number} is not dead: it {_STANDING[found[0]['state']]}"


_STANDING = {"waiting": "waits and will be sent", "sent": "was sent", "dead": "is dead"}


def _is_known(database: Database, key: str) -> bool:
    return bool(database.rows("notification_of_key", key=key))


def _runs_between(database: Database, since: float, until: float) -> dict[str, int]:
    rows = database.rows("runs_of_period", since=since, until=until)
    return {row["status"]: int(row["count"]) for row in rows}


def _forget(database: Database, sent_before: float, dead_before: float, limit: int) -> int:
    with database.transaction():
        return database.change(
            "forget_notifications", sent_before=sent_before, dead_before=dead_before, limit=limit
        )
