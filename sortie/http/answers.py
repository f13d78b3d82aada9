"""An answer of a tracker over HTTP, and what it says in JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from sortie.model.hiding import repr_without
from sortie.model.texts import start_of

_READ = 64 * 1024
"""Characters of a body that are read for people."""


class NoJson(ValueError):
    """An answer that should be JSON is something else."""


def has_list_at(body: Any, keys: Sequence[str]) -> bool:
    """Tell whether a list of objects is where these keys lead in what an answer says."""
    for key in keys:
        body = body.get(key) if isinstance(body, dict) else None
    return isinstance(body, list) and all(isinstance(item, dict) for item in body)


class HttpAnswer(Struct, frozen=True, kw_only=True):
    """A whole answer; ``headers`` have names in lower case, ``url`` is the one that was asked.

    ``remembered``: the server said that nothing has changed, and the body is the one it gave
    before. ``json`` is parsed once for as long as the answer is remembered. ``content`` is empty
    once only what was parsed is kept of it.
    """

    status: int
    url: str
    headers: Mapping[str, str]
    content: bytes
    remembered: bool = False
    _parsed: list[Any] = field(default_factory=list)

    __repr__ = repr_without("headers", "content", "_parsed")

    @property
    def ok(self) -> bool:
        """Whether it is a success."""
        return 200 <= self.status < 300

    @property
    def has_body(self) -> bool:
        """Whether it has a body, of which at least what was parsed is kept."""
        return bool(self.content or self._parsed)

    def json(self) -> Any:
        """Return what the body says. Raises NoJson."""
        if not self._parsed:
            try:
                self._parsed.append(json.loads(self.content))
            except (ValueError, RecursionError) as exc:
                raise NoJson("no JSON") from exc
        return self._parsed[0]

    def text(self) -> str:
        """Return the body on one line, far more of it than is shown: to be redacted, then cut."""
        text = start_of(self.content[: 4 * _READ].decode("utf-8", "replace"), _READ)
        return " ".join(text.split())
