"""The error families: one per port, each with a kind and a message an operator can act on."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from sortie.model.hiding import repr_without
from sortie.model.texts import cut


class ErrorKind(StrEnum):
    """Why a turn or a run failed; stable words, seen in history, API and metrics.

    ``USAGE_LIMIT``: the agent's account has used up what its plan or provider allows for now, and
    nothing is wrong with the issue. A limit that the agent itself waits out is none.
    ``ADAPTER_SETTINGS``: the agent cannot work as its block of the workflow file has it.
    """

    AGENT_NOT_FOUND = "agent_not_found"
    INVALID_WORKSPACE_CWD = "invalid_workspace_cwd"
    ADAPTER_SETTINGS = "adapter_settings"
    RESPONSE_ERROR = "response_error"
    RESPONSE_TIMEOUT = "response_timeout"
    TURN_TIMEOUT = "turn_timeout"
    TURN_STALLED = "turn_stalled"
    TURN_FAILED = "turn_failed"
    TURN_CANCELLED = "turn_cancelled"
    PORT_EXIT = "port_exit"
    USAGE_LIMIT = "usage_limit"
    HOOK_FAILED = "hook_failed"
    TEMPLATE_ERROR = "template_error"
    WORKSPACE_ERROR = "workspace_error"
    TRACKER_ERROR = "tracker_error"
    DELIVERY_FAILED = "delivery_failed"
    VERIFICATION_FAILED = "verification_failed"
    NO_CHANGE = "no_change"
    INTERNAL_ERROR = "internal_error"


class SortieError(Exception):
    """An expected failure; its text says what was attempted, on what, and what to do.

    What a host, a tracker or an agent has said may be part of it, so it is cut to TEXT_LIMIT.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(cut(message))


class AgentError(SortieError):
    """An agent could not start a session or a turn; ``timed_out``: it did not answer in time.

    ``resets_at`` is when a usage limit ends, with a zone, if that is why and the agent said so.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        timed_out: bool = False,
        resets_at: datetime | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.timed_out = timed_out
        self.resets_at = resets_at


class TrackerErrorKind(StrEnum):
    """What kind of trouble a tracker has; decides whether trying again can help."""

    UNAVAILABLE = "unavailable"  # down, slow, rate limited, answering nonsense
    NOT_FOUND = "not_found"
    PERMISSION = "permission"
    CONFLICT = "conflict"  # the issue is no longer in the state it was read in
    INVALID = "invalid"  # the issue or the request is malformed
    CLOSED = "closed"  # it takes no change of any issue now: read-only, full, forbidden, not there

    @property
    def is_outage(self) -> bool:
        """Whether the tracker itself is in trouble, which is no refusal and ends some time."""
        return self in (TrackerErrorKind.UNAVAILABLE, TrackerErrorKind.CLOSED)


class TrackerError(SortieError):
    """A tracker could not answer, or refused; ``retry_after`` is in seconds, if it said so.

    ``lists_only``: that time is for lists of candidates; anything else may be asked meanwhile.
    """

    def __init__(
        self,
        kind: TrackerErrorKind,
        message: str,
        *,
        retry_after: float | None = None,
        lists_only: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after = retry_after
        self.lists_only = lists_only


class LostAnswer(TrackerError):
    """A change was sent, and may or may not have been made: look before it is tried again."""


class TransportError(SortieError):
    """A directory or process could not be handled where a run lives."""


class ProgramNotFound(TransportError):
    """The program to start does not exist or may not be executed."""


class HostTrouble(StrEnum):
    """Why a remote host could not be used."""

    UNREACHABLE = "unreachable"  # no address, refused, timed out, hung up before login
    AUTHENTICATION = "authentication"  # it does not let us in
    HOST_KEY = "host_key"  # it is not the host that we know, or not known where it must be
    DROPPED = "dropped"  # the link was lost while in use
    DISRUPTED = "disrupted"  # the pod was lost that was used; others there are as well as before
    BUSY = "busy"  # it has no room or time for another login now
    OCCUPIED = "occupied"  # processes of earlier runs are there that cannot be ended


class HostError(TransportError):
    """A remote host could not be used; the message says what to do.

    ``retry_after``: seconds for which it cannot be used, 0 where that is not known.
    """

    def __init__(self, trouble: HostTrouble, message: str, *, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.trouble = trouble
        self.retry_after = retry_after


class ProcessesLeft(TransportError):
    """Processes could not be ended; ``run_ids`` are the runs they belong to, where known.

    ``ended`` is how many others were ended meanwhile.
    """

    def __init__(
        self,
        message: str,
        *,
        pids: frozenset[int],
        run_ids: frozenset[str] = frozenset(),
        ended: int = 0,
    ) -> None:
        super().__init__(message)
        self.pids = pids
        self.run_ids = run_ids
        self.ended = ended


class WorkspaceError(SortieError):
    """A workspace could not be made, trusted or removed."""


class GitError(WorkspaceError):
    """Git could not do what was asked of a repository; the message says what it complains of."""


class OccupiedError(WorkspaceError):
    """Processes in a workspace cannot be ended; ``ended`` counts those that could be."""

    def __init__(self, message: str, *, ended: int) -> None:
        super().__init__(message)
        self.ended = ended


class UnsavedWorkError(WorkspaceError):
    """A workspace holds work that is nowhere else, or it is not known whether it does; the message
    says what."""


class NotInRootError(WorkspaceError):
    """A workspace is not, or no longer, a directory inside the root."""


class TemplateError(SortieError):
    """A prompt could not be rendered."""


class StoreError(SortieError):
    """The database could not be opened, read or written."""


class Excerpt(Struct, frozen=True, kw_only=True):
    """A line of a file as it may be shown, and the column in it, from 1, to point at."""

    text: str
    column: int


class Problem(Struct, frozen=True, kw_only=True):
    """One finding in a WORKFLOW.md; ``line`` and ``column`` count from 1, 0 when unknown.

    ``excerpt`` is the line it is about, without secrets, where there is one to show.
    """

    path: str
    line: int
    column: int
    key: str  # dotted, "" where no key is concerned
    message: str
    severity: str = "error"  # or "warning"
    excerpt: Excerpt | None = None

    __repr__ = repr_without("excerpt")

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        subject = f"{self.key}: " if self.key else ""
        warning = "warning: " if self.severity == "warning" else ""
        return f"{place}: {warning}{subject}{self.message}"


class WorkflowError(SortieError):
    """A WORKFLOW.md is not usable; ``problems`` holds every finding, warnings included, and
    ``files`` what it names besides, as far as that is known."""

    def __init__(self, problems: tuple[Problem, ...], files: tuple[Path, ...] = ()) -> None:
        super().__init__()
        # Each finding is a line that was made here, and all of them have to be shown.
        self.args = ("\n".join(str(p) for p in problems if p.severity == "error"),)
        self.problems = problems
        self.files = files
