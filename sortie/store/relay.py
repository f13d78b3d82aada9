"""A request to the leader of a workflow that another daemon was asked, and the answer to it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from sortie.model import SortieError


class Unanswered(SortieError):
    """A request has no answer; the message says what is known of it. It may be put again after
    ``retry_after`` seconds."""

    retry_after = 2


class RelayedRequest(Struct, frozen=True, kw_only=True):
    """``workflow`` is the name of its schema. ``target`` is the path below the workflow's root
    with the query, percent-encoded; ``caller`` says what its sender may do, as a Caller of the
    access rules, and ``accept`` is the header. ``sent`` is the body, and ``sent_type`` what it
    is. ``token`` is that of the lease for which it was
    taken."""

    id: str
    workflow: str
    method: str
    target: str
    caller: str
    accept: str = ""
    sent: bytes = b""
    sent_type: str = ""
    token: int | None = None


class RelayedAnswer(Struct, frozen=True, kw_only=True):
    """An answer of a leader; the names of its ``headers`` are in lower case."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


class Withdrawn(Struct, frozen=True, kw_only=True):
    """A request without an answer that waits no more: it will not be taken, unless it ``was_taken``
    before, which is None where the server has lost it."""

    was_taken: bool | None
