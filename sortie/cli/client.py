"""Ask a daemon over HTTP.

Rule 1: the token goes to the address that the daemon wrote down, and nowhere else: no proxy of the
environment is used and no redirect is followed.
Rule 2: an answer takes ``TIMEOUT`` seconds at most.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, ValidationError, convert

from sortie import __version__
from sortie.cli.discovery import DaemonPlace, NoDaemon
from sortie.model import SortieError

if TYPE_CHECKING:
    from http.client import HTTPConnection

    from sortie.daemon.endpoint_file import DaemonEndpoint

_T = TypeVar("_T")

TIMEOUT = 10.0
"""Seconds for a request and its answer."""

_CHUNK = 64 * 1024
_LARGEST = 256 * 1024 * 1024


class Refused(SortieError):
    """The daemon answered, and will not or cannot do it."""


class DaemonAnswer(Struct, frozen=True, kw_only=True):
    """What the daemon answered; ``document`` is its JSON."""

    status: int
    document: dict[str, Any]

    @property
    def message(self) -> str:
        """The daemon's sentence about this; "" where it has none."""
        error = self.document.get("error")
        return str((error if isinstance(error, dict) else self.document).get("message", ""))


def command(
    place: DaemonPlace, attempt: str, path: str, told: Mapping[str, object] | None = None
) -> DaemonAnswer:
    """Have the daemon of a place do something; ``attempt`` says what, as in "stop DEMO-1", and
    ``told`` is sent with it.

    Raises NoDaemon and SortieError; returns once it is done.
    """
    return accepted(ask(place, place.daemon(), "POST", path, told=told), place, attempt)


def accepted(answer: DaemonAnswer, place: DaemonPlace, attempt: str) -> DaemonAnswer:
    """Return an answer that means yes. Raises Refused with what the daemon said for any other."""
    said = answer.message.rstrip(".")
    match answer.status:
        case 200 | 202:
            return answer
        case 401 | 403:
            raise Refused(
                f"cannot {attempt}: the daemon takes this command for a stranger's"
                f" ({answer.status}: {said}); if it was restarted this moment, try again, else"
                f" restart it, which writes {place.db_path}.daemon anew"
            )
        case 400 | 404 | 409 | 503 if said:
            raise Refused(said)
        case _:
            raise Refused(
                f"cannot {attempt}: the daemon answered {answer.status}: {said or 'nothing more'};"
                " its log may say why"
            )


def ask(
    place: DaemonPlace,
    endpoint: DaemonEndpoint,
    method: str,
    path: str,
    patience: float | None = None,
    told: Mapping[str, object] | None = None,
) -> DaemonAnswer:
    """Send a request to a daemon that lives, with what it is ``told``; it may take ``patience``
    seconds, else TIMEOUT.

    Raises NoDaemon where it does not answer, and SortieError where it cannot be asked at all.
    """
    from http.client import HTTPException

    patience = TIMEOUT if patience is None else patience
    who = f"the daemon of {place.source.workflow} (pid {endpoint.process.pid})"
    if endpoint.url is None or endpoint.token is None:
        raise SortieError(
            f"{who} has no HTTP server, since server.port is 0; restart it with a port to use"
            " this command"
        )
    connection = _connection(endpoint.url, patience)
    headers = {
        "Authorization": f"Bearer {endpoint.token}",
        "Accept": "application/json",
        "Connection": "close",
    }
    try:
        below = f"{_base(endpoint.url)}{path}"
        sent = None if told is None else json.dumps(told).encode()
        if sent is not None:
            headers["Content-Type"] = "application/json"
        status, body = _converse(connection, method, below, headers, patience, sent)
    except TimeoutError as error:
        raise NoDaemon(
            f"{who} has not answered within {patience:g} s at {endpoint.url}; look at its log, and"
            " restart it if it is stuck"
        ) from error
    except ConnectionRefusedError as error:
        raise NoDaemon(
            f"{who} does not listen at {endpoint.url} any more; it may be ending: try again in a"
            " moment"
        ) from error
    except (OSError, HTTPException) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise NoDaemon(
            f"{who} broke off at {endpoint.url} ({why}); try again in a moment"
        ) from error
    finally:
        connection.close()
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise SortieError(
            f"what answers at {endpoint.url} is not Sortie: {status}, and no JSON; restart the"
            " daemon"
        )
    return DaemonAnswer(status=status, document=document)


def _connection(url: str, patience: float) -> HTTPConnection:
    from http.client import HTTPConnection
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname and parts.port:
            return HTTPConnection(parts.hostname, parts.port, timeout=patience)
    except ValueError:
        pass
    raise SortieError(f"the daemon gives {url!r} as its address, which is none; restart it")


def _base(url: str) -> str:
    """Return the path below which a daemon answers, without its last slash."""
    from urllib.parse import urlsplit

    return urlsplit(url).path.rstrip("/")


def _converse(
    connection: HTTPConnection,
    method: str,
    path: str,
    headers: dict[str, str],
    patience: float,
    sent: bytes | None,
) -> tuple[int, bytes]:
    deadline = time.monotonic() + patience
    connection.connect()
    sock = connection.sock

    def hurry() -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock.settimeout(left)

    hurry()
    connection.request(method, path, body=sent, headers=headers)
    hurry()
    response = connection.getresponse()
    body = bytearray()
    while not response.isclosed():  # a complete answer closes it and its socket, from 3.13 on
        hurry()
        chunk = response.read1(_CHUNK)
        if not chunk:
            break
        body += chunk
        if len(body) > _LARGEST:
            raise OSError("too much")
    return response.status, bytes(body)


def understood(kind: type[_T], document: Any) -> _T:
    """Return an answer as the view that it was made from. Raises SortieError where it is none."""
    try:
        return convert(document, kind)
    except ValidationError as error:
        raise SortieError(
            f"the daemon's answer is not one of {kind.__name__} of version {__version__}; use the"
            " command line of the daemon's version, or restart the daemon"
        ) from error
