"""How a run ends, by its last turn, by the agent's status file, or by an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import (
    AgentError,
    ErrorKind,
    Failed,
    Finish,
    Finished,
    HostError,
    HostTrouble,
    NotInRootError,
    OccupiedError,
    ProgramNotFound,
    RunEnd,
    RunStatus,
    TemplateError,
    TrackerError,
    TransportError,
    TurnOutcome,
    TurnResult,
    WorkspaceError,
    cut,
)
from sortie.model.questions import Question
from sortie.model.texts import NOT_ON_A_LINE
from sortie.resources import shortage_behind
from sortie.worker.reread import Gone, Reread, Unreadable


class Abandoned(Exception):
    """A run cannot go on; ``failed`` is how it ends."""

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        occupied: bool = False,
        resets_at: datetime | None = None,
    ) -> None:
        super().__init__(message)
        self.failed = Failed(kind=kind, message=message, occupied=occupied, resets_at=resets_at)


@contextmanager
def workspace_needed() -> Iterator[None]:
    """Raise Abandoned where the block finds that a workspace cannot be used."""
    try:
        yield
    except NotInRootError as exc:
        raise Abandoned(ErrorKind.INVALID_WORKSPACE_CWD, str(exc)) from exc
    except (WorkspaceError, TransportError) as exc:
        occupied = isinstance(exc, OccupiedError)
        raise Abandoned(ErrorKind.WORKSPACE_ERROR, str(exc), occupied=occupied) from exc


def blamed(failed: Failed, error: BaseException, *, began: bool) -> Failed:
    """Return how a run failed that an error ended, with what its remote host or a shortage on this
    machine has to do with it.

    ``began`` tells whether anything had run on the host.
    """
    if shortage_behind(error) is not None:
        return replace(failed, kind=ErrorKind.PORT_EXIT, shortage=True)
    cause = host_error_behind(error)
    if cause is None:
        return failed
    if cause.trouble is HostTrouble.DISRUPTED:
        return replace(failed, kind=ErrorKind.PORT_EXIT, disrupted=True)
    if began and cause.trouble is HostTrouble.BUSY:
        return replace(failed, kind=ErrorKind.PORT_EXIT, shortage=True)
    return replace(failed, kind=ErrorKind.PORT_EXIT, unreached=not began, adrift=began)


def host_error_behind(error: BaseException) -> HostError | None:
    """Return the trouble with a host that an error comes from, None where it does not."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, HostError):
        cause = cause.__cause__
    return cause


def port_error_kind(error: Exception, of_transports: ErrorKind) -> ErrorKind | None:
    """Return the kind of what an adapter may raise, None for anything else.

    ``of_transports`` is what a transport's error is, but for a program that is not there.
    """
    match error:
        case AgentError(kind=kind):
            return kind
        case ProgramNotFound():
            return ErrorKind.AGENT_NOT_FOUND
        case TransportError():
            return of_transports
        case _:
            return None


def reset_time(error: Exception) -> datetime | None:
    """Return when the usage limit ends that an error tells of. Raises TypeError and ValueError for
    what is no time with a zone."""
    return checked_time(error.resets_at) if isinstance(error, AgentError) else None


def checked_time(value: object) -> datetime | None:
    """Return a time that an adapter gave. Raises TypeError and ValueError where it has no zone."""
    if value is None:
        return None
    if not isinstance(value, datetime):
        raise TypeError(f"a time was expected of an agent, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise ValueError(f"an agent's time has no zone: {value.isoformat()}")
    return value


def sole_error(error: Exception) -> Exception:
    """Return the error that nurseries wrapped into groups, where it was the only one."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


class StatusWord(StrEnum):
    """A word that an agent may leave in ``.sortie/status``."""

    DONE = "done"
    BLOCKED = "blocked"
    NEEDS_HUMAN_REVIEW = "needs-human-review"


_AFTER_WORD = ":;,.-\u2013\u2014"
"""Characters that may part the word in a status file from the reason."""

REASON_LIMIT = 1000
"""Characters of the reason in a status file that are kept."""


class AgentStatus(Struct, frozen=True):
    """What an agent has left in ``.sortie/status``: a word, and on one line why."""

    word: StatusWord
    reason: str = ""

    @classmethod
    def of(cls, text: str) -> AgentStatus | None:
        """Read a status file's text, without secrets; None where its first word means nothing."""
        first, _, rest = " ".join(NOT_ON_A_LINE.sub(" ", text).split()).partition(" ")
        try:
            word = StatusWord(first.rstrip(_AFTER_WORD).casefold())
        except ValueError:
            return None
        return cls(word, cut(rest.lstrip(_AFTER_WORD + " "), REASON_LIMIT))


_FINISHES = {
    StatusWord.DONE: Finish.DONE,
    StatusWord.BLOCKED: Finish.BLOCKED,
    StatusWord.NEEDS_HUMAN_REVIEW: Finish.REVIEW,
}
_STATUSES = {
    TurnOutcome.FAILED: RunStatus.FAILED,
    TurnOutcome.TIMED_OUT: RunStatus.TIMED_OUT,
    TurnOutcome.STALLED: RunStatus.STALLED,
    TurnOutcome.CANCELLED: RunStatus.CANCELLED,
}


def after_turn(
    result: TurnResult,
    status: AgentStatus | Question | None,
    *,
    read: Reread | Gone | Unreadable | None,
    error: Exception | None = None,
    began: bool = True,
) -> RunEnd:
    """Return how the run ends: the agent's word counts most, then the turn's own failure.

    ``read`` is the issue as re-read after the turn; None where it was not. ``error`` is what ended
    the turn; ``began`` tells whether anything had run on the run's host before it.
    """
    if isinstance(status, Question):
        return Finished(finish=Finish.ASKED, question=status)
    if status is not None:
        return Finished(finish=_FINISHES[status.word], reason=status.reason)
    if result.outcome is not TurnOutcome.COMPLETED:
        failed = Failed(
            kind=result.error_kind or ErrorKind.TURN_FAILED,
            message=cut(result.message or "the turn failed"),
            status=_STATUSES[result.outcome],
            resets_at=result.resets_at,
        )
        if error is None:
            return failed
        cause = host_error_behind(error)
        was_lost = cause is not None and cause.trouble is HostTrouble.DROPPED
        return blamed(failed, error, began=began or was_lost)
    match read:
        case Gone():
            return Finished(finish=Finish.GONE)
        case Reread():
            return Finished(finish=Finish.LEFT_ACTIVE)
        case Unreadable() | None:
            return Finished(finish=Finish.UNREADABLE)


@contextmanager
def delivery_needed(kind: ErrorKind = ErrorKind.DELIVERY_FAILED) -> Iterator[None]:
    """Raise Abandoned where the block finds that git or the forge cannot do what is needed."""
    try:
        yield
    except (WorkspaceError, TransportError, TrackerError) as exc:
        raise Abandoned(kind, str(exc)) from exc
    except TemplateError as exc:
        raise Abandoned(ErrorKind.TEMPLATE_ERROR, str(exc)) from exc
