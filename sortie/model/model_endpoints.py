"""By which variables an agent is told where its model is, and with which key it asks there."""

from __future__ import annotations

from msgspec import Struct


class ModelEndpoint(Struct, frozen=True, kw_only=True):
    """A service of models that an agent can be led to by a variable.

    ``base_url`` is that variable, ``default`` where the agent asks without it. ``keys`` are the
    variables whose value it sends there in a header, as it is. ``unless`` are variables with which
    it asks elsewhere or signs its requests itself: then the key cannot be put in by others.
    """

    base_url: str
    default: str
    keys: tuple[str, ...]
    unless: tuple[str, ...] = ()
