"""The API server of the stand-in: HTTP, watches, and programs over WebSockets."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from tests.kubernetes_api.contract import KubernetesContract, received_by
from tests.kubernetes_api.discovery import discovery_routes, sandbox_resources, tell_namespace
from tests.kubernetes_api.kubelet import Kubelet, NodeRefusal
from tests.kubernetes_api.objects import Json, Objects, Refused, now
from tests.kubernetes_api.program import Program
from tests.kubernetes_api.sandbox_controller import VERSION, SandboxController, with_defaults
from tests.ports import free_port
from tests.trackers.server.certificates import make_certificate
from tests.trackers.server.contract import Violation
from tests.trackers.server.exchange import Received

PROTOCOL = "v5.channel.k8s.io"
TOKEN = "token-of-the-tests"
_ACCOUNT = "system:serviceaccount:sortie:sortie"

_KINDS = {
    "pods": "Pod",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "leases": "Lease",
    "sandboxes": "Sandbox",
}
_VERBS = {"GET": "list", "POST": "create"}
_ALSO = {"secrets": "Secret", "events": "Event"}


@dataclass
class Fault:
    """What the server answers instead, ``times`` times, to requests that match."""

    method: str
    path: str
    refused: Refused
    times: int = 1


@dataclass
class Api:
    """One cluster; ``quota`` is how many pods a namespace may have."""

    port: int
    nursery: trio.Nursery
    certificate: Path
    objects: Objects = field(default_factory=Objects)
    faults: list[Fault] = field(default_factory=list)
    requests: list[tuple[str, str]] = field(default_factory=list)
    version: str = "v1.35.0"
    quota: int | None = None
    denied: frozenset[tuple[str, str]] = frozenset()
    """Verbs and resources that the token may not use."""
    links: set[trio.CancelScope] = field(default_factory=set)
    contract: KubernetesContract = field(default_factory=KubernetesContract)
    """What is not as described is noted there, and told when the cluster ends."""
    away: Literal["", "refuses", "silent"] = ""
    """How it does not do its work: by refusing everything, or by answering nothing."""

    def __post_init__(self) -> None:
        self.kubelet = Kubelet(self.objects, self.nursery)
        self.controller: SandboxController | None = None

    def have_sandboxes(self) -> SandboxController:
        """Have the API of agent-sandbox and its controller from now on."""
        self.controller = SandboxController(self.objects, self.make_pod, self.delete_pod)
        self.nursery.start_soon(self.controller.run)
        return self.controller

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"https://127.0.0.1:{self.port}"

    def kubeconfig(self, namespace: str = "agents") -> str:
        """Return a kubeconfig for it."""
        authority = base64.b64encode(self.certificate.read_bytes()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        return json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": cluster}],
                "users": [{"name": "test", "user": {"token": TOKEN}}],
                "contexts": [
                    {
                        "name": "test",
                        "context": {"cluster": "test", "user": "test", "namespace": namespace},
                    }
                ],
            }
        )

    def cut_links(self) -> int:
        """Cut all WebSockets; what they run goes on. Return how many there were."""
        count = len(self.links)
        for scope in list(self.links):
            scope.cancel()
        return count

    def app(self) -> Starlette:
        """Return the server's application."""
        objects = "/api/v1/namespaces/{namespace}/{resource}"
        leases = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/{resource}"
        sandboxes = f"/apis/{VERSION}/namespaces/{{namespace}}/{{resource}}"
        reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        every = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        return Starlette(
            routes=[
                *discovery_routes(),
                Route("/api/v1/namespaces/{namespace}", self._guarded(tell_namespace)),
                Route("/version", self._guarded(self._version)),
                Route(f"/apis/{VERSION}/", self._guarded(self._sandbox_api)),
                Route(reviews, self._guarded(self._review), methods=["POST"]),
                WebSocketRoute(f"{objects}/{{name}}/exec", self._exec),
                *(
                    Route(path, self._guarded(ask), methods=every)
                    for base in (objects, leases, sandboxes)
                    for path, ask in ((base, self._many), (f"{base}/{{name}}", self._one))
                ),
            ]
        )

    def _guarded(self, ask: Callable[[Request], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            self.requests.append((request.method, request.url.path))
            came = received_by(request, request.method, await request.body())
            try:
                self._check(came)
                await self._stay_away()
                if request.headers.get("authorization") != f"Bearer {TOKEN}":
                    raise Refused(401, "Unauthorized", "Unauthorized")
                self._fail_as_told(request.method, str(request.url))
                answered: Response = await ask(request)
            except Refused as exc:
                after = {"Retry-After": str(exc.retry_after)} if exc.retry_after else {}
                answered = JSONResponse(exc.answer, exc.status, headers=after)
            answered.headers["date"] = formatdate(time.time() + self.objects.ahead, usegmt=True)
            if not isinstance(answered, StreamingResponse):
                self.contract.check_answer(came, answered.status_code, bytes(answered.body))
            return answered

        return answer

    def _check(self, came: Received) -> None:
        """Refuse, and note, what is not as described."""
        try:
            self.contract.check_request(came)
        except Violation as exc:
            self.contract.violations.append(str(exc))
            raise Refused(400, "BadRequest", f"not as described: {exc}") from exc

    async def _stay_away(self) -> None:
        while self.away == "silent":
            await trio.sleep(0.05)
        if self.away:
            raise Refused(503, "ServiceUnavailable", "the server is currently unable to answer")

    def _fail_as_told(self, method: str, url: str) -> None:
        for fault in self.faults:
            if fault.method == method and re.search(fault.path, url):
                fault.times -= 1
                if fault.times <= 0:
                    self.faults.remove(fault)
                raise fault.refused

    async def _version(self, _: Request) -> Response:
        return JSONResponse({"major": "1", "minor": "35", "gitVersion": self.version})

    async def _sandbox_api(self, _: Request) -> Response:
        self._check_known("sandboxes")
        return JSONResponse(sandbox_resources())

    async def _review(self, request: Request) -> Response:
        review = await request.json()
        asked = review["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
        allowed = (asked["verb"], resource) not in self.denied
        return JSONResponse({**review, "metadata": {}, "status": {"allowed": allowed}}, 201)

    async def _many(self, request: Request) -> Response:
        resource, namespace = request.path_params["resource"], request.path_params["namespace"]
        self._check_known(resource)
        self._check_allowed(_VERBS.get(request.method, ""), resource, namespace)
        if request.method == "POST":
            return await self._create(request, resource, namespace)
        if request.query_params.get("watch") in ("1", "true"):
            return self._watch(request, resource, namespace)
        matching = _selector(request)
        items = [one for one in self.objects.items(resource, namespace) if matching(one)]
        return JSONResponse(
            {
                "kind": f"{(_KINDS | _ALSO)[resource]}List",
                "apiVersion": VERSION if resource == "sandboxes" else "v1",
                "metadata": {"resourceVersion": str(self.objects.version)},
                "items": items,
            }
        )

    def _check_known(self, resource: str) -> None:
        there = resource != "sandboxes" or self.controller is not None
        if not there or resource not in {**_KINDS, **_ALSO}:
            raise Refused(404, "NotFound", "the server could not find the requested resource")

    def _check_allowed(self, verb: str, resource: str, namespace: str) -> None:
        if (verb, resource) in self.denied:
            group = VERSION.partition("/")[0] if resource == "sandboxes" else ""
            message = (
                f'{resource} is forbidden: User "{_ACCOUNT}" cannot {verb} resource "{resource}"'
                f' in API group "{group}" in the namespace "{namespace}"'
            )
            raise Refused(403, "Forbidden", message)

    async def _create(self, request: Request, resource: str, namespace: str) -> Response:
        given = await request.json()
        if resource == "pods":
            return JSONResponse(self.make_pod(namespace, given), 201)
        if resource == "sandboxes":
            with_defaults(given)
        return JSONResponse(self.objects.create(resource, namespace, given), 201)

    def make_pod(self, namespace: str, given: Json) -> Json:
        """Make a pod, as whoever asks for it; 403 where the quota has no room."""
        if self.quota is not None:
            used = len(self.objects.items("pods", namespace))
            if used >= self.quota:
                name = given["metadata"]["name"]
                message = (
                    f'pods "{name}" is forbidden: exceeded quota: agents, requested: pods=1,'
                    f" used: pods={used}, limited: pods={self.quota}"
                )
                raise Refused(403, "Forbidden", message)
        made = self.objects.create("pods", namespace, {**given, "status": {"phase": "Pending"}})
        self.nursery.start_soon(self.kubelet.run, namespace, made["metadata"]["name"])
        return made

    def _watch(self, request: Request, resource: str, namespace: str) -> Response:
        since = int(request.query_params.get("resourceVersion") or self.objects.version)
        bound = float(request.query_params.get("timeoutSeconds") or 300)
        matching = _selector(request)
        came = received_by(request, request.method)

        def line(kind: str, about: Json) -> bytes:
            told = {"type": kind, "object": about}
            self.contract.check_change(came, told)
            return json.dumps(told).encode() + b"\n"

        async def lines() -> AsyncIterator[bytes]:
            try:
                with trio.move_on_after(bound):
                    async for kind, changed in self.objects.changes(resource, namespace, since):
                        if matching(changed):
                            yield line(kind, changed)
            except Refused as exc:
                yield line("ERROR", exc.answer)

        return StreamingResponse(lines(), media_type="application/json")

    async def _one(self, request: Request) -> Response:
        resource, namespace = request.path_params["resource"], request.path_params["namespace"]
        name = request.path_params["name"]
        self._check_known(resource)
        if request.method == "GET":
            return JSONResponse(self.objects.get(resource, namespace, name))
        if request.method == "PATCH":
            if request.headers["content-type"] != "application/merge-patch+json":
                raise Refused(415, "UnsupportedMediaType", "only merge patches here")
            return JSONResponse(self.objects.merge(resource, namespace, name, await request.json()))
        if request.method == "PUT":
            return JSONResponse(self.objects.change(resource, namespace, await request.json()))
        return JSONResponse(await self._delete(request, resource, namespace, name))

    async def _delete(self, request: Request, resource: str, namespace: str, name: str) -> Json:
        found = self.objects.get(resource, namespace, name)
        body = json.loads(await request.body() or b"{}")
        for key, wanted in (body.get("preconditions") or {}).items():
            if wanted != found["metadata"][key]:
                raise Refused(409, "Conflict", f"the {key} in the precondition is another")
        if resource == "pods":
            return self.delete_pod(namespace, name)
        if resource == "persistentvolumeclaims":
            if "deletionTimestamp" not in found["metadata"]:
                found["metadata"]["deletionTimestamp"] = now(self.objects.ahead)
                self.objects.change(resource, namespace, found)
                self.nursery.start_soon(self.kubelet.let_go, found)
            return found
        removed = self.objects.remove(resource, namespace, name)
        if resource == "sandboxes":
            return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
        return removed

    def delete_pod(self, namespace: str, name: str) -> Json:
        """Have a pod end, as whoever deletes it does; it is there until its node has ended it."""
        found = self.objects.get("pods", namespace, name)
        if "deletionTimestamp" not in found["metadata"]:
            found["metadata"]["deletionTimestamp"] = now(self.objects.ahead)
            self.objects.change("pods", namespace, found)
            uid = found["metadata"]["uid"]
            self.nursery.start_soon(self.kubelet.end, namespace, name, uid)
        return found

    async def _exec(self, socket: WebSocket) -> None:
        self.requests.append(("EXEC", socket.url.path))
        params = socket.path_params
        if socket.headers.get("authorization") != f"Bearer {TOKEN}":
            await _refuse(socket, Refused(401, "Unauthorized", "Unauthorized"))
            return
        if PROTOCOL not in socket.scope["subprotocols"]:
            await _refuse(socket, Refused(400, "BadRequest", "no protocol that is known here"))
            return
        try:
            self._check(received_by(socket, "GET"))
            await self._stay_away()
            self._fail_as_told("EXEC", socket.url.path)
            with self.kubelet.program(params["namespace"], params["name"]) as (pod, env):
                with trio.CancelScope() as scope:
                    self.links.add(scope)
                    await socket.accept(subprotocol=PROTOCOL)
                    argv = socket.query_params.getlist("command")
                    await Program(self.kubelet, socket, pod, env, argv).run(scope)
                self.links.discard(scope)
        except NodeRefusal as exc:  # the node is asked when the WebSocket is open
            await socket.accept(subprotocol=PROTOCOL)
            await socket.send_bytes(b"\x03" + json.dumps(exc.answer).encode())
        except Refused as exc:
            await _refuse(socket, exc)
        with suppress(RuntimeError):
            await socket.close()


async def _refuse(socket: WebSocket, refused: Refused) -> None:
    await socket.send_denial_response(JSONResponse(refused.answer, refused.status))


def _selector(request: Request) -> Callable[[Json], bool]:
    """Return what tells whether an object is asked for."""
    parts = request.query_params.get("labelSelector", "").split(",")
    labels = dict(part.split("=", 1) for part in parts if "=" in part)
    keys = {part for part in parts if part and "=" not in part}
    field_ = request.query_params.get("fieldSelector", "")
    name = field_.removeprefix("metadata.name=") if field_ else None

    def matches(one: Json) -> bool:
        has = one["metadata"].get("labels") or {}
        named = name is None or one["metadata"]["name"] == name
        same = all(has.get(key) == value for key, value in labels.items())
        return named and same and keys <= has.keys()

    return matches


@asynccontextmanager
async def cluster_running(port: int | None = None) -> AsyncIterator[Api]:
    """Have a cluster while the block lasts; nothing of it stays.

    Raises AssertionError at the end for what was not as described.
    """
    config = Config()
    config.accesslog = config.errorlog = None
    config.include_date_header = False
    config.graceful_timeout = 0.1
    config.shutdown_timeout = 1.0
    async with AsyncExitStack() as stack:
        made = make_certificate(Path(stack.enter_context(TemporaryDirectory())))
        nursery = await stack.enter_async_context(trio.open_nursery())
        api = Api(port or free_port(), nursery, made)
        config.certfile = config.keyfile = str(made)
        config.bind = [f"127.0.0.1:{api.port}"]
        stop = trio.Event()
        async with trio.open_nursery() as serving:
            listening = serving.start
            await listening(_serve, api, config, stop)
            try:
                yield api
            finally:
                with trio.CancelScope(shield=True):
                    await api.kubelet.close()
                stop.set()
                serving.cancel_scope.deadline = trio.current_time() + 3
        nursery.cancel_scope.cancel()
    assert not api.contract.violations, "\n".join(dict.fromkeys(api.contract.violations))


async def _serve(
    api: Api, config: Config, stop: trio.Event, task_status: trio.TaskStatus[Any]
) -> None:
    with suppress(trio.Cancelled):
        await serve(api.app(), config, shutdown_trigger=stop.wait, task_status=task_status)  # type: ignore[arg-type]
