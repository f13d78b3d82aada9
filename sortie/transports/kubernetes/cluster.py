"""The API of one cluster, as far as pods need it: requests, watches, and programs over WebSockets.

Rule 1: an answer that a caller can act on is an ApiRefusal; whatever else fails is a HostError.
Rule 2: a request that was put off (429) is made again after the pause that was asked for.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import trio
from msgspec import Struct

from sortie.model import HostError, HostTrouble
from sortie.resources.lease import LeaseLost
from sortie.transports.kubernetes.api_errors import (
    UNAUTHORIZED,
    ApiRefusal,
    PutOffError,
    StaleError,
    translated,
    unreachable,
)
from sortie.transports.kubernetes.under_lease import link_extensions, sending

if TYPE_CHECKING:
    import httpx
    import httpx_ws

ANSWER_BOUND = 30.0
"""Seconds for one request."""

EXEC_PROTOCOL = "v5.channel.k8s.io"
"""The first protocol in which the end of a stdin can be said."""

_PUT_OFF = 5  # times that a request may be put off
_WATCH_FOR = 300  # seconds after which the server ends a watch by itself
_LARGEST_READ = 1 << 16
_QUEUE = 4  # messages of a WebSocket that wait to be read
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

        ``attempt`` is what for, in messages. A PATCH is a merge. Raises ApiRefusal and HostError,
        and LeaseLost for one that changes something when the lease of the workflow is over.
        """
        pauses = 0
        again = True
        while True:
            try:
                return await self._request(
                    attempt, method, path, version, params, body, cluster_wide=cluster_wide
                )
            except StaleError:  # the server had closed a connection that waited
                if not again:
                    raise
                again = False
            except PutOffError as exc:
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
        with self._bounded(attempt):
            api = await self._opened()
        namespace = None if cluster_wide else self.namespace
        asked = {**given, "version": version, "namespace": namespace, "url": path}
        with sending(method), self._bounded(attempt):
            async with api.call_api(method, **asked) as response:
                answer = response.json()
        if not isinstance(answer, dict):
            raise self.error(attempt, "it answered what no API server says")
        return answer

    async def version(self) -> str:
        """Return the version of the API server. Raises HostError."""
        with self._bounded("reach the API server"):
            found = await (await self._opened()).async_version()
            return str(found["gitVersion"])
        raise AssertionError

    @contextmanager
    def _bounded(self, attempt: str) -> Iterator[None]:
        """Bound what is asked within the block; raises what ``translated`` makes of a failure."""
        try:
            with trio.fail_after(ANSWER_BOUND):
                yield
        except LeaseLost:
            raise
        except Exception as exc:
            raise self._translated(attempt, exc) from exc

    @asynccontextmanager
    async def watch(
        self, attempt: str, path: str, params: Mapping[str, str], *, version: str = "v1"
    ) -> AsyncIterator[AsyncIterator[tuple[str, Json]]]:
        """Have the changes of some objects, until the server ends the watch.

        The iterator yields the kind of a change and the object. Raises ApiRefusal (also from the
        iterator; 410 where the watch has to begin anew) and HostError.
        """
        query = {"watch": "1", "timeoutSeconds": str(_WATCH_FOR), **params}
        try:
            api = await self._opened()
            given = {"namespace": self.namespace, "url": path, "params": query}
            async with (
                api.call_api("GET", version=version, **given, stream=True) as response,
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
                raise self.error(
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
                    extensions={**link_extensions(), **(sni if api.auth.tls_server_name else {})},
                )
                socket: httpx_ws.AsyncWebSocketSession
                socket = await stack.enter_async_context(connecting)
                return socket
            except wire.httpx_ws.WebSocketUpgradeError as exc:
                if exc.response.status_code == UNAUTHORIZED and again:
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
        return self.error(attempt, f"{said or 'no reason given'} ({response.status_code})")

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
        return translated(self.host, attempt, exc, ANSWER_BOUND)

    def error(self, attempt: str, reason: str) -> HostError:
        """Return the error for a host that cannot be used, with the reason and its remedy."""
        return unreachable(self.host, attempt, reason)


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
