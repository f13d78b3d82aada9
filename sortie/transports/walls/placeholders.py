"""Placeholders: what an agent has in the place of a credential, and how the two are exchanged.

Rule 1: a placeholder is random, made for one run, and worth nothing elsewhere.
Rule 2: it has the length of its credential, so that an answer which repeats the one can be made to
repeat the other.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import string
from collections.abc import Iterable, Sequence

from msgspec import Struct

from sortie.model.hiding import repr_without
from sortie.transports.walls.destinations import Unreachable
from sortie.transports.walls.request_target import Headers, header

_PREFIXES = (
    "sk-ant-api03-",
    "sk-ant-oat01-",
    "sk-ant-",
    "sk-or-v1-",
    "sk-proj-",
    "sk-",
    "github_pat_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "glpat-",
    "AIza",
)
"""How keys begin that programs know by their beginning."""

_LETTERS = string.ascii_letters + string.digits


class Placeholder(Struct, frozen=True, kw_only=True):
    """A placeholder and the credential that it stands for."""

    value: str
    secret: str

    __repr__ = repr_without("secret")

    def exchanged(self, header_value: bytes) -> bytes | None:
        """Return a header's value with the credential; None where it is not the placeholder's.

        The placeholder is the whole value, what follows a word such as Bearer, or one of name and
        password of Basic.
        """
        value, secret = self.value.encode(), self.secret.encode()
        scheme, _, token = header_value.rpartition(b" ")
        if token == value:
            return header_value[: -len(value)] + secret
        pair = _decoded(token) if scheme.strip().lower() == b"basic" else b""
        parts = pair.split(b":", 1)
        if value not in parts:
            return None
        real = b":".join(secret if part == value else part for part in parts)
        return header_value[: -len(token)] + base64.b64encode(real)

    def stands_in(self, header_value: bytes) -> bool:
        """Tell whether a header's value holds the placeholder, anywhere in it."""
        value = self.value.encode()
        return value in header_value or value in _decoded(header_value.rpartition(b" ")[2])


def placeholder_for(secret: str) -> Placeholder:
    """Return a new placeholder that looks like a credential."""
    prefix = next((known for known in _PREFIXES if secret.startswith(known)), "")
    value = prefix + "".join(secrets.choice(_LETTERS) for _ in secret[len(prefix) :])
    return Placeholder(value=value, secret=secret)


class HiddenCredentials:
    """An answer in which every credential, as it was sent, is its placeholder again.

    ``sent`` are the headers before and after the exchange: of Basic the encoded pair is hidden too.
    What may be the beginning of a credential at the end of a chunk is kept back until the next.
    """

    def __init__(self, placeholders: Iterable[Placeholder], sent: Sequence[tuple[bytes, bytes]]):
        pairs = {one.secret.encode(): one.value.encode() for one in placeholders}
        for before, after in sent:
            pairs[after.rpartition(b" ")[2]] = before.rpartition(b" ")[2]
        self._pairs = sorted(pairs.items(), key=lambda pair: -len(pair[0]))
        self._kept = b""

    def headers(self, headers: Headers) -> Sequence[tuple[bytes, bytes]]:
        """Return the headers of an answer. Raises Unreachable where its body cannot be read."""
        if any(coding.strip().lower() != b"identity" for coding in header(headers, _ENCODING)):
            raise Unreachable("the server answers in an encoding that it was not asked for")
        return [(name, self._hidden(value)) for name, value in headers]

    def body(self, chunk: bytes) -> bytes:
        """Return what of the body can be passed on after a further chunk."""
        text = self._hidden(self._kept + chunk)
        kept = max((_beginning(text, secret) for secret, _ in self._pairs), default=0)
        self._kept = text[len(text) - kept :]
        return text[: len(text) - kept]

    def rest(self) -> bytes:
        """Return what was kept back."""
        rest, self._kept = self._kept, b""
        return rest

    def _hidden(self, text: bytes) -> bytes:
        for secret, value in self._pairs:
            text = text.replace(secret, value)
        return text


_ENCODING = b"content-encoding"


def _beginning(text: bytes, secret: bytes) -> int:
    """Return how many bytes at the end of a text are the beginning of a secret."""
    longest = min(len(secret) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(secret[:size])), 0)


def _decoded(token: bytes) -> bytes:
    try:
        return base64.b64decode(token, validate=True)
    except binascii.Error:
        return b""
