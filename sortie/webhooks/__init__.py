"""The port to services that tell of changes by webhooks. ADAPTERS finds an adapter by its kind.

An adapter does no I/O. What it reads of a delivery is believed no further than that it names what
is to be looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from sortie.adapters import Adapters
from sortie.model import SortieError
from sortie.model.webhooks import Mention


class WebhookDelivery(Struct, frozen=True, kw_only=True):
    """A request as it came: headers by their names in lower case, and the raw body. ``at`` is in
    Unix seconds when it came."""

    headers: Mapping[str, str]
    body: bytes
    at: float


class NotAuthentic(SortieError):
    """A delivery is not from the service, or it is not known to be."""


class OutOfTime(NotAuthentic):
    """A delivery is signed with a time too far from now: it may have been recorded by anybody."""


class WebhookAdapter(Struct, frozen=True, kw_only=True):
    """What an adapter's folder offers.

    A request without any of the headers ``signed_by`` is refused before its body is read.
    ``verify`` raises NotAuthentic where a secret does not show that a delivery is authentic.
    ``id_of`` returns by which id the service knows a delivery, "" for none. ``mention`` returns
    what a delivery names, None where it is about something else; it raises msgspec.DecodeError and
    RecursionError for what it cannot read.
    """

    kind: str
    signed_by: tuple[str, ...]
    verify: Callable[[WebhookDelivery, str], None]
    id_of: Callable[[WebhookDelivery], str]
    mention: Callable[[WebhookDelivery], Mention | None]


ADAPTERS = Adapters(__name__, WebhookAdapter)
