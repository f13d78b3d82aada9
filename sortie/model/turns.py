"""What an agent tells while and after it works on one prompt.

Adapters make these events; texts may be of any length, the worker bounds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from sortie.model.errors import ErrorKind
from sortie.model.runs import ProcessIdentity, TurnOutcome
from sortie.model.texts import start_of

NOTIFICATION_LIMIT = 500
"""Characters that a notification carries at most."""


class Launched(Struct, frozen=True, kw_only=True):
    """The turn's process runs; sent in each turn, also where the process is the session's.

    ``adopted``: another daemon has started it, and all that it wrote comes again.
    """

    process: ProcessIdentity
    adopted: bool = False


class Notification(Struct, frozen=True, kw_only=True):
    """A non-empty line of the agent's output, at most NOTIFICATION_LIMIT characters.

    It stands for so many ``lines``, which came together and of which it is the last. ``text`` is
    all of them, whole and parted by line feeds; None where the message is all there is, and ""
    where other events tell what it stands for.
    """

    message: str
    lines: int = 1
    text: str | None = None


def notification(lines: Sequence[str]) -> Notification:
    """Return what stands for some lines, at least one."""
    message, text = start_of(lines[-1], NOTIFICATION_LIMIT), None
    if len(lines) > 1 or len(lines[-1]) > NOTIFICATION_LIMIT:
        text = "\n".join(lines)
    return Notification(message=message, lines=len(lines), text=text)


class ErrorsWritten(Struct, frozen=True, kw_only=True):
    """Lines that the agent wrote to its stderr, parted by line feeds."""

    text: str


class ToolStarted(Struct, frozen=True, kw_only=True):
    """The agent uses a tool; ``id`` names this use in its session.

    ``kind`` is the agent's word for what such tools do (read, edit, execute); ``locations`` are
    the files it is about, and ``about`` is what else it is given, such as a command or a pattern.
    """

    id: str
    name: str
    kind: str | None = None
    locations: tuple[str, ...] = ()
    about: str | None = None


class ToolEnded(Struct, frozen=True, kw_only=True):
    """A tool is done with; ``duration`` is in seconds, None where the agent does not tell it.

    ``error`` is what a tool that failed has said, and ``output`` what one has said that did not;
    plain text of any length. ``about`` is as in ToolStarted, where it is known only now.
    """

    id: str
    failed: bool = False
    duration: float | None = None
    locations: tuple[str, ...] = ()
    error: str | None = None
    output: str | None = None
    about: str | None = None


class ModelAnswered(Struct, frozen=True, kw_only=True):
    """The model has answered a request of the agent's, after so many seconds."""

    seconds: float
    model: str | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """What was used; None is unknown, and 0 is none at all.

    ``input_tokens`` hold the ``cached_tokens``, which were read from the provider's cache, and the
    ``cache_write_tokens``, which were written to it. ``model`` is whose tokens they are. ``cost``
    is in ``currency``, as ``USD``, and as the agent or its provider tells it: an adapter estimates
    none. ``context_share`` is how full the model's context is now, from 0 to 1.

    ``cumulative``: the numbers, but for the share, are sums since the session was entered, of
    each model for itself; else they are added to those before. What an agent
    counts in another way (by conversation, over sessions) its adapter makes one of these two of.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    model: str | None = None
    credits: float | None = None
    cost: float | None = None
    currency: str | None = None
    context_share: float | None = None
    cumulative: bool = False


class SessionKnown(Struct, frozen=True, kw_only=True):
    """The session has this id, which the agent gave only now, or changed."""

    session_id: str


class AnswerGiven(Struct, frozen=True, kw_only=True):
    """What the agent has said last in this turn, for the person who asked; plain text of any
    length. Sent at the turn's end, or earlier and again."""

    text: str


class TurnTraced(Struct, frozen=True, kw_only=True):
    """All tools that the agent uses in this turn are sent as events, before this one or after it;
    without any, it uses none.

    ``model`` is the one that answers, None where that is not known, and ``answer`` what it has said
    in the end.
    """

    model: str | None = None
    answer: str | None = None


class TurnUntraced(Struct, frozen=True, kw_only=True):
    """Which tools were used in this turn is not known, though this agent keeps a record."""

    reason: str


class PermissionAsked(Struct, frozen=True, kw_only=True):
    """The agent asked whether it may do something, and the adapter has answered."""

    question: str
    answer: str


AgentEvent = (
    Launched
    | Notification
    | ErrorsWritten
    | ToolStarted
    | ToolEnded
    | ModelAnswered
    | Usage
    | SessionKnown
    | AnswerGiven
    | TurnTraced
    | TurnUntraced
    | PermissionAsked
)


class TurnResult(Struct, frozen=True, kw_only=True):
    """How a turn ended; ``error_kind`` and ``message`` are None exactly when it completed.

    ``warnings`` are lines of stderr worth a look, given where the turn failed. ``resets_at`` is
    when a usage limit ends (``error_kind`` is USAGE_LIMIT), with a zone; None where the agent does
    not say.
    """

    outcome: TurnOutcome
    error_kind: ErrorKind | None = None
    message: str | None = None
    warnings: tuple[str, ...] = ()
    resets_at: datetime | None = None
