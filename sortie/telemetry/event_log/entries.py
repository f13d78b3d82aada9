"""What the event log holds: pictures of the scheduler's state, events with their times, digests.

Rule 1: of an issue's description and comments only digests are kept: decisions compare them and ask
for no word of them.
Rule 2: an issue is written once in a segment for as long as it reads the same; a poll names the
issues by their numbers, as far as they differ from those of the poll before.
Rule 3: what is decided is compared without what is left out, so live and replayed digests agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import takewhile
from operator import is_
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from sortie.config.block import Block
from sortie.model import Comment, Issue, IssueId
from sortie.scheduler import Checkpoint, Decision, Event
from sortie.scheduler import events as ev
from sortie.scheduler.claims import Rechecking

FORMAT = 1
"""Changes with what stands in a file; one of another format cannot be read."""

_DIGEST_SIZE = 8
_MARK = "blake2b:"

_S = TypeVar("_S", bound=Struct)


class SegmentHeader(Struct, frozen=True, kw_only=True):
    """The beginning of a segment; ``at`` is in Unix seconds what ``now`` is in monotonic ones.

    ``follows``: nothing happened between the last entry of the segment before and this.
    """

    format: int
    version: str
    at: float
    now: float
    follows: bool
    checkpoint: Raw


class EventEntry(Struct, frozen=True, array_like=True):
    """An event without its issues, and the digest of what was decided.

    ``issues`` get the next numbers. ``head`` and ``tail`` are how many numbers of the last poll
    stand before and after ``listed``.
    """

    now: float
    kind: str
    event: Raw
    digest: bytes
    issues: tuple[Issue, ...] = ()
    listed: tuple[int, ...] = ()
    head: int = 0
    tail: int = 0


def _values(thing: Any) -> Any:
    """Return what stands for a mapping, or for a block of settings as it was decoded."""
    if isinstance(thing, Mapping):
        return dict(thing)
    if isinstance(thing, Block):
        return {name: getattr(thing, name) for name in type(thing).model_fields}
    raise TypeError(f"{type(thing).__name__} has no place in the event log")


def _block(kind: type[Any], values: Any) -> Any:
    """Return a block that has these values."""
    fields = {}
    for name, field in kind.model_fields.items():
        value = values[name]
        kinds = (field.annotation, *get_args(field.annotation))
        inner = next((k for k in kinds if isinstance(k, type) and issubclass(k, Block)), None)
        if inner is not None and value is not None:
            value = _block(inner, value)
        fields[name] = tuple(value) if isinstance(value, list) else value
    return kind.model_construct(**fields)


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_values)
_DIGESTED = msgspec.msgpack.Encoder(order="deterministic", enc_hook=_values)
_HEADERS = msgspec.msgpack.Decoder(SegmentHeader)
_ENTRIES = msgspec.msgpack.Decoder(EventEntry)
_CHECKPOINTS = msgspec.msgpack.Decoder(Checkpoint, dec_hook=_block)
_EVENTS: Mapping[str, msgspec.msgpack.Decoder[Any]] = {
    kind.__name__: msgspec.msgpack.Decoder(kind, dec_hook=_block) for kind in get_args(Event)
}


class IssueDigests:
    """Issues without the words of their descriptions and comments."""

    def __init__(self) -> None:
        self._known: dict[IssueId, tuple[Issue, Issue]] = {}

    def slim(self, issue: Issue) -> Issue:
        """Return an issue with digests in place of description and comments."""
        known = self._known.get(issue.id)
        if known is not None and (known[0] is issue or known[0] == issue):
            return known[1]
        slim = _slim(issue)
        self._known[issue.id] = (issue, slim)
        return slim

    def within(self, thing: _S) -> _S:
        """Return a claim, an event or a decision with its issue slim."""
        issue = getattr(thing, "issue", None)
        if isinstance(issue, Issue):
            thing = replace(thing, issue=self.slim(issue))
        if isinstance(thing, Rechecking) and thing.waited is not None:
            thing = replace(thing, waited=self.within(thing.waited))
        return thing

    def forget_all_but(self, kept: Sequence[Issue]) -> None:
        """Forget the issues that are not among these."""
        ids = {issue.id for issue in kept}
        self._known = {i: known for i, known in self._known.items() if i in ids}


def _slim(issue: Issue) -> Issue:
    description, comments = issue.description, issue.comments
    if description and not _is_digest(description):
        description = _digest_of(description.encode("utf-8", "surrogatepass"))
    if comments and not (len(comments) == 1 and _is_digest(comments[0].body)):
        comments = (Comment(author="", body=_digest_of(_ENCODER.encode(comments))),)
    return replace(issue, description=description, comments=comments)


def _is_digest(text: str) -> bool:
    return text.startswith(_MARK) and len(text) == len(_MARK) + 2 * _DIGEST_SIZE


def _digest_of(data: bytes) -> str:
    return _MARK + blake2b(data, digest_size=_DIGEST_SIZE).hexdigest()


def without_digests(issue: Issue) -> Issue:
    """Return an issue of the log as it can be shown: nothing stands for what was left out."""
    return replace(issue, description="", comments=())


def digest(decisions: Sequence[Decision], issues: IssueDigests) -> bytes:
    """Return what tells these decisions from others."""
    if not decisions:
        return b""
    named = [(type(each).__name__, issues.within(each)) for each in decisions]
    return blake2b(_DIGESTED.encode(named), digest_size=_DIGEST_SIZE).digest()


class SegmentEncoder:
    """Encodes a segment: its header, then its entries."""

    def __init__(self, issues: IssueDigests) -> None:
        self._issues = issues
        self._numbers: dict[IssueId, tuple[Issue, int]] = {}
        self._count = 0
        self._polled: tuple[Issue, ...] = ()
        self._listed: tuple[int, ...] = ()

    def header(
        self, checkpoint: Checkpoint, *, version: str, at: float, now: float, follows: bool
    ) -> bytes:
        """Return the header of a segment that begins with this state."""
        slim, within = self._issues.slim, self._issues.within
        candidates = checkpoint.candidates
        self._issues.forget_all_but([each.issue for each in (*candidates, *checkpoint.claims)])
        picture = replace(
            checkpoint,
            claims=tuple(map(within, checkpoint.claims)),
            watches=tuple(map(within, checkpoint.watches)),
            candidates=tuple(replace(each, issue=slim(each.issue)) for each in candidates),
        )
        header = SegmentHeader(
            format=FORMAT,
            version=version,
            at=at,
            now=now,
            follows=follows,
            checkpoint=Raw(_ENCODER.encode(picture)),
        )
        return _ENCODER.encode(header)

    def entry(self, now: float, event: Event, decisions: Sequence[Decision]) -> bytes:
        """Return the entry of an event and what was decided."""
        kind, decided = type(event).__name__, digest(decisions, self._issues)
        if not isinstance(event, ev.CandidatesFetched | ev.IssuesRefreshed):
            raw = Raw(_ENCODER.encode(self._issues.within(event)))
            return _ENCODER.encode(EventEntry(now, kind, raw, decided))
        issues, head, tail = event.issues, 0, 0
        if isinstance(event, ev.CandidatesFetched):
            head, tail = _same_ends(self._polled, issues)
        new: list[Issue] = []
        listed = tuple(self._number(i, new) for i in issues[head : len(issues) - tail])
        if isinstance(event, ev.CandidatesFetched):
            self._polled = issues
        raw = Raw(_ENCODER.encode(replace(event, issues=())))
        return _ENCODER.encode(EventEntry(now, kind, raw, decided, tuple(new), listed, head, tail))

    def _number(self, issue: Issue, new: list[Issue]) -> int:
        """Return the number of an issue; one that has none yet is added to ``new``."""
        slim, known = self._issues.slim(issue), self._numbers.get(issue.id)
        if known is not None and (known[0] is slim or known[0] == slim):
            return known[1]
        new.append(slim)
        number = self._count
        self._numbers[issue.id] = (slim, number)
        self._count += 1
        return number


def _same_ends(old: Sequence[Issue], new: Sequence[Issue]) -> tuple[int, int]:
    """Return how many issues at the beginning and at the end are the same objects as before."""
    head = sum(1 for _ in takewhile(bool, map(is_, old, new)))
    rest = min(len(old), len(new)) - head
    ends = zip(reversed(old), reversed(new), range(rest), strict=False)
    return head, sum(1 for _ in takewhile(bool, (one is other for one, other, _ in ends)))


class Incident(Struct, frozen=True):
    """An event as it was recorded: when, what, and the digest of what was decided."""

    now: float
    event: Event
    digest: bytes


def decoded_header(payload: bytes) -> SegmentHeader:
    """Decode a header. Raises msgspec.DecodeError, and ValueError for another format."""
    header = _HEADERS.decode(payload)
    if header.format != FORMAT:
        raise ValueError(
            f"it was written by Sortie {header.version}, whose event log has another format"
        )
    return header


def decoded_checkpoint(header: SegmentHeader) -> Checkpoint:
    """Decode the state with which a segment begins. Raises msgspec.DecodeError."""
    return _CHECKPOINTS.decode(header.checkpoint)


def decoded_time(payload: bytes) -> float:
    """Return when the event of an entry came. Raises msgspec.DecodeError."""
    return _ENTRIES.decode(payload).now


def decoded_entries(payloads: Iterator[bytes]) -> Iterator[Incident]:
    """Decode the entries of a segment. Raises msgspec.DecodeError."""
    issues: list[Issue] = []
    polled: tuple[Issue, ...] = ()
    for payload in payloads:
        entry = _ENTRIES.decode(payload)
        event = _EVENTS[entry.kind].decode(entry.event)
        if isinstance(event, ev.CandidatesFetched | ev.IssuesRefreshed):
            issues += entry.issues
            listed = tuple(issues[number] for number in entry.listed)
            ends = polled[: entry.head], polled[len(polled) - entry.tail :]
            event = replace(event, issues=(*ends[0], *listed, *ends[1]))
            if isinstance(event, ev.CandidatesFetched):
                polled = event.issues
        yield Incident(entry.now, event, entry.digest)
