"""The settings of ``notifications``: who is told of what, and how."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from pydantic import Field
from pydantic_core import PydanticCustomError

from sortie.config.block import Block
from sortie.config.references import Lookup
from sortie.config.report import Finding
from sortie.config.rules import Name, Texts
from sortie.config.values import (
    CheckWithSchema,
    Secret,
    TimeZone,
    matching,
    milliseconds,
    needs,
)
from sortie.model.addresses import split_endpoint
from sortie.model.notifications import NOTIFIED_EVENTS

ALL_EVENTS = "all"
WEBHOOK = "webhook"

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,31})://.", re.ASCII)
_KEY_BYTES = (24, 64)  # as the specification of Standard Webhooks has it
_KEY_PREFIX = "whsec_"
_SECRET_PART = 8  # a shorter password is a word as often as not, which stands in other texts too
_TOKEN_PART = 16  # of a path or query, where words stand as well


def _events() -> CheckWithSchema:
    """Accept ``all``, or a list of events."""

    def check(value: Any) -> Any:
        if value == ALL_EVENTS:
            return NOTIFIED_EVENTS
        if not isinstance(value, list | tuple) or not value:
            raise needs(f"{ALL_EVENTS} or a list of {', '.join(NOTIFIED_EVENTS)}")
        for at, event in enumerate(value):
            if event not in NOTIFIED_EVENTS:
                wrong = {"what": f"needs one of {', '.join(NOTIFIED_EVENTS)}", "item": at}
                raise PydanticCustomError("needs", "{what}", wrong)
        return tuple(dict.fromkeys(value))

    listed = {"type": "array", "items": {"type": "string", "enum": list(NOTIFIED_EVENTS)}}
    return CheckWithSchema(check, shape={"oneOf": [{"const": ALL_EVENTS}, listed]})


ClockTime = Annotated[
    str, matching(r"(?:[01]\d|2[0-3]):[0-5]\d", 'a time of day in quotes, as "22:00"')
]


class QuietHours(Block):
    """From when to when, by the clock of a zone, nothing is sent but what cannot wait."""

    begin: Annotated[ClockTime, Field(alias="from")]
    end: Annotated[ClockTime, Field(alias="to")]
    timezone: TimeZone = "UTC"


class NotificationTarget(Block):
    """A place to which notifications go: an ``url`` of apprise, or a ``webhook``.

    Both addresses may hold tokens, so no message repeats them. ``bundle`` is for how many seconds
    a notification waits for others that go with it; a webhook gets one at a time.
    """

    name: Name | None = None
    events: Annotated[tuple[str, ...], _events()]
    rules: Texts | None = None
    url: Annotated[Secret | None, Lookup.NEEDED] = None
    webhook: Annotated[Secret | None, Lookup.NEEDED] = None
    secret: Annotated[Secret | None, Lookup.NEEDED] = None
    quiet_hours: QuietHours | None = None
    bundle: Annotated[float, milliseconds(0, 86_400_000)] = Field(60.0, alias="bundle_ms")
    give_up: Annotated[float, milliseconds(1000)] = Field(86_400.0, alias="give_up_ms")

    @property
    def address(self) -> str:
        """Where it goes; a secret."""
        given = self.webhook if self.url is None else self.url
        return "" if given is None else given.get_secret_value().strip()

    @property
    def kind(self) -> str:
        """What stands for the address where it is shown: its scheme, or ``webhook``."""
        found = None if self.url is None else _SCHEME.match(self.address)
        return WEBHOOK if found is None else found[1].lower()

    @property
    def key(self) -> bytes:
        """What a webhook is signed with."""
        return b"" if self.secret is None else _key_of(self.secret.get_secret_value()) or b""

    @property
    def secrets(self) -> frozenset[str]:
        """What no text may hold: address and key, and the parts of these that are secrets."""
        known = {self.address}
        if self.secret is not None:
            written = self.secret.get_secret_value().strip()
            known |= {written, written.removeprefix(_KEY_PREFIX)}
        return frozenset(known | set(_secret_parts(self.address)) - {""})


def _secret_parts(address: str) -> Iterator[str]:
    try:
        parts = urlsplit(address)
        password = parts.password or ""
    except ValueError:
        return
    for part in (password, unquote(password)):
        if len(part) >= _SECRET_PART:
            yield part
    tokens = re.split(r"[/?&=:,@]", f"{parts.netloc}/{parts.path}?{parts.query}")
    for token in tokens:
        if len(token) >= _TOKEN_PART and re.search(r"\d", token) and "." not in token:
            yield token


def _key_of(secret: str) -> bytes | None:
    """Return the key that is written in base64, None where it is none."""
    try:
        key = b64decode(secret.strip().removeprefix(_KEY_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if _KEY_BYTES[0] <= len(key) <= _KEY_BYTES[1] else None


def target_findings(target: NotificationTarget) -> Iterator[Finding]:
    """Yield what is wrong with a target by itself; paths begin at the target."""
    if (target.url is None) == (target.webhook is None):
        said = "needs either url or webhook" + ("" if target.url is None else ", not both")
        yield Finding(path=("url",), message=said, needs=(("webhook",),))
        return
    if target.url is not None:
        if _SCHEME.match(target.address) is None:
            message = "needs an address that apprise knows, as slack://..., mailto://... or ntfy://"
            yield Finding(path=("url",), message=message)
        if target.secret is not None:
            message = "is for webhook; an address of apprise has its secret in itself"
            yield Finding(path=("secret",), message=message)
        return
    if split_endpoint(target.address) is None:
        yield Finding(path=("webhook",), message="needs an address as https://example.com/hook")
    if target.secret is None:
        message = "is required, to sign what is sent"
        yield Finding(path=("secret",), message=message, because=("webhook",))
    elif not target.key:
        message = (
            "needs whsec_ and the base64 of 24 to 64 random bytes; make one with: "
            "echo whsec_$(openssl rand -base64 32)"
        )
        yield Finding(path=("secret",), message=message)
    if "bundle" in target.model_fields_set:
        message = "means nothing to a webhook, which gets one notification at a time"
        yield Finding(path=("bundle_ms",), message=message, severity="warning")


def named(targets: Sequence[NotificationTarget]) -> tuple[NotificationTarget, ...]:
    """Give a name to each target that has none: its kind, with a number from the second on."""
    taken = {target.name for target in targets}
    done = []
    for target in targets:
        if target.name is None:
            names = (target.kind, *(f"{target.kind}-{n}" for n in range(2, len(targets) + 2)))
            name = next(name for name in names if name not in taken)
            taken.add(name)
            target = target.model_copy(update={"name": name})
        done.append(target)
    return tuple(done)
