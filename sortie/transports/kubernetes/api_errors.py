"""What goes wrong on the way to an API server, and what it answers instead of doing a thing."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import trio

from sortie.model import HostError, HostTrouble

if TYPE_CHECKING:
    import httpx

UNAUTHORIZED = 401

_TOO_MANY = 429
_LONGEST_PAUSE = 20.0  # seconds


class ApiRefusal(Exception):
    """The API server answered with an error that a caller may expect."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

    @property
    def is_missing(self) -> bool:
        """Whether there is no such thing."""
        return self.status == 404

    @property
    def is_conflict(self) -> bool:
        """Whether it is there already, or was changed meanwhile."""
        return self.status == 409

    @property
    def is_expired(self) -> bool:
        """Whether the watch has to begin anew."""
        return self.status == 410


class StaleError(HostError):
    """A connection was closed before an answer came."""

    def __init__(self, message: str) -> None:
        super().__init__(HostTrouble.UNREACHABLE, message)


class PutOffError(Exception):
    """The server asks for the same request after a pause."""

    def __init__(self, message: str, pause: str) -> None:
        super().__init__(message)
        self.pause = min(float(pause) if pause.isdigit() else 1.0, _LONGEST_PAUSE)


def unreachable(host: str, attempt: str, reason: str) -> HostError:
    """Return the error for a host that cannot be used."""
    return HostError(HostTrouble.UNREACHABLE, f"could not {attempt} on host {host}: {reason}")


def translated(host: str, attempt: str, exc: Exception, bound: float) -> Exception:
    """Return the error to raise for one that came from below, in at most ``bound`` seconds."""
    from sortie.transports.kubernetes import wire

    match exc:
        case ApiRefusal() | HostError() | PutOffError():
            return exc
        case wire.kr8s.ServerError(response=response) if response is not None:
            return _answered(host, attempt, exc, response)
        case trio.TooSlowError() | wire.kr8s.APITimeoutError() | wire.httpx.TimeoutException():
            return unreachable(host, attempt, f"the API server did not answer in {bound:g} s")
        case ssl.SSLError():
            return unreachable(host, attempt, f"its certificate cannot be trusted: {exc}")
        case wire.httpx.RemoteProtocolError() | wire.httpx.ReadError() | wire.httpx.WriteError():
            return StaleError(*unreachable(host, attempt, f"it hung up: {_said(exc)}").args)
        case wire.httpx.HTTPError() | wire.httpx_ws.HTTPXWSException() | OSError():
            return unreachable(host, attempt, f"the API server cannot be reached: {_said(exc)}")
        case ValueError() | KeyError() | TypeError() | IndexError():
            return unreachable(
                host,
                attempt,
                f"no usable kubeconfig or service account ({_said(exc)}); check"
                " worker.kubeconfig and the context",
            )
    return exc


def _answered(host: str, attempt: str, exc: Exception, response: httpx.Response) -> Exception:
    status = response.status_code
    try:
        told = response.json()
    except ValueError:
        told = {}
    told = told if isinstance(told, dict) else {}
    message = str(told.get("message") or exc)
    if status == _TOO_MANY or "retry-after" in response.headers:
        return PutOffError(message, response.headers.get("retry-after", "1"))
    if status >= 500 or status == UNAUTHORIZED:
        return unreachable(host, attempt, f"{message} ({status})")
    return ApiRefusal(status, str(told.get("reason", "")), message)


def _said(exc: BaseException) -> str:
    return str(exc).splitlines()[0] if str(exc) else type(exc).__name__
