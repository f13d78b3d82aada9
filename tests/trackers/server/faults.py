"""What can go wrong between a client and a test server, beside what the service itself does."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.trackers.server.exchange import Received, Reply

HTML = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in</body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """An answer of its own; the request is not performed."""

    status: int
    body: Any = field(default_factory=lambda: {"message": "refused"})
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Html:
    """A page of a proxy or a sign-in, as a success or with a status; it is not performed."""

    status: int = 200


@dataclass(frozen=True, slots=True)
class Truncate:
    """The request is performed, and half of its answer arrives; ``whole``: as if it were all."""

    whole: bool = False


@dataclass(frozen=True, slots=True)
class Drip:
    """The request is performed, and its answer comes byte by byte, so many seconds apart."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Reset:
    """The connection is reset: after the request was ``performed``, or before."""

    performed: bool


@dataclass(frozen=True, slots=True)
class Hang:
    """Nothing is answered until the server closes; ``performed``: though it was done."""

    performed: bool = False


@dataclass(frozen=True, slots=True)
class Large:
    """The answer is so many bytes of blanks."""

    size: int


@dataclass(frozen=True, slots=True)
class Instead:
    """The request is performed, and its answer is what a function makes of the right one."""

    change: Callable[[Reply], Reply]


Fault = Refuse | Html | Truncate | Drip | Reset | Hang | Large | Instead


@dataclass(slots=True, kw_only=True)
class Rule:
    """A fault of the next ``times`` requests that match, after ``skip`` others that do."""

    fault: Fault
    method: str = ""  # any
    path: re.Pattern[str] = field(default_factory=lambda: re.compile(""))
    body: re.Pattern[str] = field(default_factory=lambda: re.compile(""))
    times: float = 1
    skip: int = 0

    def takes(self, request: Received) -> bool:
        """Tell whether it is this request's turn, and count it."""
        if not self.times or self.method not in ("", request.method):
            return False
        if not self.path.search(request.path):
            return False
        if self.body.pattern and not self.body.search(request.body.decode("utf-8", "replace")):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True
