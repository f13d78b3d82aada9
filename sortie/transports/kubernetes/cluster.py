"""The API of one cluster, as far as pods need it: requests, watches, and programs over WebSockets.

Rule 1: an answer that a caller can act on is an ApiRefusal; whatever else fails is a HostError.
Rule 2: a request that was put off (429) is made again after the pause that was asked for.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import trio
from msgspec import Struct

from sortie.model import HostError, HostTrouble

if TYPE_CHECKING:
    import httpx
    import httpx_ws

ANSWER_BOUND = 30.0
"""Seconds for one request."""

EXEC_PROTOCOL = "v5.channel.k8s.io"
"""The first protocol in which the end of a stdin can be said."""

_PUT_OFF = 5  # times that a request may be put off
_LONGEST_PAUSE = 20.0  # seconds
_WATCH_FOR = 300  # seconds after which the server ends a watch by itself
_UNAUTHORIZED, _TOO_MANY = 401, 429
_LARGEST_READ = 1 << 16
_QUEUE = 4  # messages that wait for whoever reads a WebSocket
_WIRE = "sortie.transports.kubernetes.wire"
_OWN_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

Json = dict[str, Any]


class ClusterPlace(Struct, frozen=True, kw_only=True):
    """A namespace of a cluster; ``host`` is its name in the settings.

    ``kubeconfig`` and ``context`` are None for what the daemon itself would use, and ``namespace``
    for the one of the context.
    """

    host: str
    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None


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


class Cluster:
    """One namespace of a cluster, connected to by the first request; to be closed."""

    def __init__(self, place: ClusterPlace) -> None:
        self.host = place.host
        self._place = place
        self._api: Any = None
        self._sockets: httpx.AsyncClient | None = None
        self._opening = trio.Lock()
        self.namespace = place.namespace or "default"
        """That of the context is known after the first request only."""

    async def aclose(self) -> None:
        """Close all connections."""
        sockets, self._sockets = self._sockets, None
        api, self._api = self._api, None
        if sockets is not None:
            await sockets.aclose()
        if api is not None and api._session is not None:
            await api._session.aclose()

    async def request(
        self,
        attempt: str,
        method: str,
        path: str,
        *,
        version: str = "v1",
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        cluster_wide: bool = False,
    ) -> Json:
        """Make a request about something in the namespace; return what the server says.

        ``attempt`` is what for, in messages. A PATCH is a merge. Raises ApiRefusal and HostError.
        """
        pauses = 0
        again = True
        while True:
            try:
                return await self._request(
                    attempt, method, path, version, params, body, cluster_wide=cluster_wide
                )
            except _StaleError:  # the server had closed a connection that waited
                if not again:
                    raise
                again = False
            except _PutOffError as exc:
                pauses += 1
                if pauses > _PUT_OFF:
                    raise HostError(
                        HostTrouble.BUSY,
                        f"could not {attempt} on host {self.host}: the API server has put it off"
                        f" {pauses} times: {exc}; look at its load and its priority levels",
                    ) from exc
                await trio.sleep(exc.pause)

    async def _request(
        self,
        attempt: str,
        method: str,
        path: str,
        version: str,
        params: Mapping[str, str] | None,
        body: Mapping[str, Any] | None,
        *,
        cluster_wide: bool,
    ) -> Json:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        given: dict[str, Any] = {"params": dict(params or {}), "headers": {"Content-Type": kind}}
        if body is not None:
            given["content"] = json.dumps(body)
        try:
            with trio.fail_after(ANSWER_BOUND):
                api = await self._opened()
                namespace = None if cluster_wide else self.namespace
                async with api.call_api(
                    method, version=version, namespace=namespace, url=path, **given
                ) as response:
                    answer = response.json()
        except Exception as exc:
            raise self._translated(attempt, exc) from exc
        if not isinstance(answer, dict):
            raise self._error(attempt, "it answered what no API server says")
        return answer

    async def version(self) -> str:
        """Return the version of the API server. Raises HostError."""
        try:
            with trio.fail_after(ANSWER_BOUND):
                found = await (await self._opened()).async_version()
                return str(found["gitVersion"])
        except Exception as exc:
            raise self._translated("reach the API server", exc) from exc

    async def may(self, verb: str, resource: str, group: str = "") -> bool:
        """Tell whether the daemon may do something in the namespace."""
        kind, _, below = resource.partition("/")
        asked = {
            "namespace": self.namespace,
            "verb": verb,
            "group": group,
            "resource": kind,
            "subresource": below,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        answer = await self.request(
            "ask for rights",
            "POST",
            "selfsubjectaccessreviews",
            version="authorization.k8s.io/v1",
            body=body,
            cluster_wide=True,
        )
        return bool((answer.get("status") or {}).get("allowed"))

    @asynccontextmanager
    async def watch(
        self, attempt: str, path: str, params: Mapping[str, str]
    ) -> AsyncIterator[AsyncIterator[tuple[str, Json]]]:
        """Have the changes of some objects, until the server ends the watch.

        The iterator yields the kind of a change and the object. Raises ApiRefusal (also from the
        iterator; 410 where the watch has to begin anew) and HostError.
        """
        given = {"watch": "1", "timeoutSeconds": str(_WATCH_FOR), **params}
        try:
            api = await self._opened()
            async with (
                api.call_api(
                    "GET", namespace=self.namespace, url=path, params=given, stream=True
                ) as response,
                aclosing(_changes(response)) as changes,
            ):
                yield changes
        except (ApiRefusal, HostError):
            raise
        except Exception as exc:
            raise self._translated(attempt, exc) from exc

    @asynccontextmanager
    async def run(
        self, attempt: str, pod: str, container: str, argv: tuple[str, ...]
    ) -> AsyncIterator[httpx_ws.AsyncWebSocketSession]:
        """Run a program in a pod, with its stdin, stdout and stderr, as long as the block lasts.

        Raises HostError where it cannot be begun.
        """
        streams = {"stdin": "true", "stdout": "true", "stderr": "true"}
        params = [("container", container), *streams.items(), *(("command", a) for a in argv)]
        async with AsyncExitStack() as stack:
            socket = await self._connected(attempt, pod, params, stack)
            if socket.subprotocol != EXEC_PROTOCOL:
                raise self._error(
                    attempt, f"it does not speak {EXEC_PROTOCOL}, which Kubernetes 1.30 does"
                )
            yield socket

    async def _connected(
        self, attempt: str, pod: str, params: list[tuple[str, str]], stack: AsyncExitStack
    ) -> httpx_ws.AsyncWebSocketSession:
        wire = await _loaded()
        for again in (True, False):
            try:
                with trio.fail_after(ANSWER_BOUND):
                    api = await self._opened()
                    client = await self._socket_client(api)
                sni = {"sni_hostname": api.auth.tls_server_name}
                connecting: Any = wire.httpx_ws.aconnect_ws(
                    f"/api/v1/namespaces/{self.namespace}/pods/{pod}/exec",
                    client,
                    params=params,
                    subprotocols=[EXEC_PROTOCOL],
                    max_message_size_bytes=_LARGEST_READ,
                    queue_size=_QUEUE,
                    keepalive_ping_interval_seconds=None,
                    session_class=wire.BoundedSocket,
                    headers={"Authorization": f"Bearer {api.auth.token}"} if api.auth.token else {},
                    extensions=sni if api.auth.tls_server_name else {},
                )
                socket: httpx_ws.AsyncWebSocketSession
                socket = await stack.enter_async_context(connecting)
                return socket
            except wire.httpx_ws.WebSocketUpgradeError as exc:
                if exc.response.status_code == _UNAUTHORIZED and again:
                    await api.auth.reauthenticate()
                    self._sockets = None
                    continue
                raise await self._refused(attempt, exc.response) from exc
            except Exception as exc:
                raise self._translated(attempt, exc) from exc
        raise AssertionError

    async def _refused(self, attempt: str, response: httpx.Response) -> HostError:
        wire = await _loaded()
        try:
            with trio.move_on_after(ANSWER_BOUND):
                await response.aread()
            said = response.json().get("message", "")
        except (wire.httpx.HTTPError, wire.httpx.StreamError, ValueError, AttributeError):
            said = ""
        return self._error(attempt, f"{said or 'no reason given'} ({response.status_code})")

    async def _socket_client(self, api: Any) -> httpx.AsyncClient:
        """Return the client of WebSockets, of which any number may be open."""
        if self._sockets is None:
            wire = await _loaded()
            self._sockets = wire.httpx.AsyncClient(
                base_url=api.auth.server,
                verify=await api.auth.ssl_context(),
                limits=wire.httpx.Limits(max_connections=None, max_keepalive_connections=0),
                timeout=ANSWER_BOUND,
                proxy=api.auth.proxy,
            )
        return self._sockets

    async def _opened(self) -> Any:
        """Return the connected API. Raises what kr8s does."""
        async with self._opening:
            if self._api is None:
                given: dict[str, Any] = {
                    "context": self._place.context,
                    "namespace": self._place.namespace,
                }
                if self._place.kubeconfig is not None:
                    given["kubeconfig"] = self._place.kubeconfig
                wire = await _loaded()
                self._api = await wire.open_api(**given)
                self.namespace = self._place.namespace or await self._known_namespace()
            return self._api

    async def _known_namespace(self) -> str:
        """Return the namespace of the context, or that of the daemon's own pod."""
        if "KUBERNETES_SERVICE_HOST" in os.environ and not self._api.auth.active_context:
            with suppress(OSError):
                return (await trio.Path(_OWN_NAMESPACE).read_text()).strip()
        return str(self._api.auth.namespace)

    def _translated(self, attempt: str, exc: Exception) -> Exception:
        """Return the error to raise for one that came from below."""
        from sortie.transports.kubernetes import wire

        match exc:
            case ApiRefusal() | HostError() | _PutOffError():
                return exc
            case wire.kr8s.ServerError(response=response) if response is not None:
                return self._answered(attempt, exc, response)
            case trio.TooSlowError() | wire.kr8s.APITimeoutError() | wire.httpx.TimeoutException():
                return self._error(attempt, f"the API server did not answer in {ANSWER_BOUND:g} s")
            case ssl.SSLError():
                return self._error(attempt, f"its certificate cannot be trusted: {exc}")
            case (
                wire.httpx.RemoteProtocolError() | wire.httpx.ReadError() | wire.httpx.WriteError()
            ):
                return _StaleError(*self._error(attempt, f"it hung up: {_said(exc)}").args)
            case wire.httpx.HTTPError() | wire.httpx_ws.HTTPXWSException() | OSError():
                return self._error(attempt, f"the API server cannot be reached: {_said(exc)}")
            case ValueError() | KeyError() | TypeError() | IndexError():
                return self._error(
                    attempt,
                    f"no usable kubeconfig or service account ({_said(exc)}); check"
                    " worker.kubeconfig and the context",
                )
        return exc

    def _answered(self, attempt: str, exc: Exception, response: httpx.Response) -> Exception:
        status = response.status_code
        try:
            told = response.json()
        except ValueError:
            told = {}
        told = told if isinstance(told, dict) else {}
        message = str(told.get("message") or exc)
        if status == _TOO_MANY or "retry-after" in response.headers:
            return _PutOffError(message, response.headers.get("retry-after", "1"))
        if status >= 500 or status == _UNAUTHORIZED:
            return self._error(attempt, f"{message} ({status})")
        return ApiRefusal(status, str(told.get("reason", "")), message)

    def error(self, attempt: str, reason: str) -> HostError:
        """Return the error for a host that cannot be used, with the reason and its remedy."""
        return self._error(attempt, reason)

    def _error(self, attempt: str, reason: str) -> HostError:
        return HostError(
            HostTrouble.UNREACHABLE, f"could not {attempt} on host {self.host}: {reason}"
        )


class _StaleError(HostError):
    """A connection was closed before an answer came."""

    def __init__(self, message: str) -> None:
        super().__init__(HostTrouble.UNREACHABLE, message)


class _PutOffError(Exception):
    """The server asks for the same request after a pause."""

    def __init__(self, message: str, pause: str) -> None:
        super().__init__(message)
        self.pause = min(float(pause) if pause.isdigit() else 1.0, _LONGEST_PAUSE)


async def _loaded() -> Any:
    """Return the module with the libraries, whose import takes a second or more."""
    return await trio.to_thread.run_sync(import_module, _WIRE)


async def _changes(response: httpx.Response) -> AsyncGenerator[tuple[str, Json], None]:
    async for line in response.aiter_lines():
        change = json.loads(line)
        kind, about = change["type"], change["object"]
        if kind == "ERROR":
            raise ApiRefusal(
                int(about.get("code", 500)), about.get("reason", ""), about.get("message", "")
            )
        yield kind, about


def _said(exc: BaseException) -> str:
    return str(exc).splitlines()[0] if str(exc) else type(exc).__name__
