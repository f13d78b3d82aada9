"""What it costs that runs live in pods of a cluster, whose nodes are this machine.

The cluster is that of the tests, in a process of its own, which is not counted. With
``SORTIE_BENCHMARK_CLUSTER=real`` it has a real API server.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.transports import Command
from sortie.transports.kubernetes.background import Background
from sortie.transports.kubernetes.cluster import Cluster, ClusterPlace
from sortie.transports.kubernetes.instance_lease import InstanceLease
from sortie.transports.kubernetes.manifests import CONTAINER
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.transports.remote.launch import Bounds
from tests.benchmarks.place import BenchmarkPlace, benchmark_place
from tests.benchmarks.row import Scale, Value, middle

PROGRAMS = 100
PODS = 200
AT_ONCE = 10
"""So many are started at the same time: all pods are processes of this machine."""
KEY = "ONE"
_BEGIN_BOUND = 600.0  # seconds
_END_BOUND = 300.0  # seconds: each process of each pod is looked for
EXIT = 3
"""The stream of a WebSocket that tells how a program has ended."""


def programs(scale: Scale) -> Mapping[str, Value]:
    """Measure programs that end at once, in turn behind the supervisor and by a bare exec."""
    with TemporaryDirectory(prefix="sortie-benchmark-") as place, cluster_in(Path(place)):
        return trio.run(_programs, Path(place), scale.often(PROGRAMS, 3))


async def _programs(place: Path, count: int) -> Mapping[str, Value]:
    ours: list[float] = []
    bare: list[float] = []
    questions: list[float] = []
    async with _transport(place) as (cluster, transport):
        began = time.perf_counter()
        pod = await transport.pod(KEY, make=True)
        assert pod is not None
        cold = time.perf_counter() - began
        workspace, _ = await transport.files.make_directory(transport.root, KEY)
        env = {"PATH": os.environ["PATH"]}
        command = Command(argv=("/bin/true",), cwd=workspace, env=env, grace=0.0)
        for _ in range(count):
            began = time.perf_counter()
            async with transport.process(command) as process:
                async for _ in process.output():
                    pass
                await process.wait()
            ours.append(time.perf_counter() - began)
            began = time.perf_counter()
            async with cluster.run("measure", pod.name, CONTAINER, ("/bin/true",)) as socket:
                while (await socket.receive_bytes())[0] != EXIT:
                    pass
            bare.append(time.perf_counter() - began)
            began = time.perf_counter()
            await transport.files.contained(transport.root, f"{transport.root}/{KEY}")
            questions.append(time.perf_counter() - began)
    return {
        "pods.program": Value(
            ours=middle(ours) * 1e3,
            baseline=middle(bare) * 1e3,
            also={"a question about a file": middle(questions) * 1e3, "the pod": cold * 1e3},
        )
    }


def crowd(scale: Scale) -> Mapping[str, Value]:
    """Measure one daemon with so many pods, in each of which an agent is silent."""
    count = scale.of(PODS, 3)
    with benchmark_place() as place, cluster_in(place.root):
        place.write_agent("exec sleep 100000")
        _configure(place, count)
        with place.crowded_daemon() as daemon:
            daemon.wait("http.listening")
            place.add_issues(["FIRST"])
            daemon.refresh()
            place.marks.wait("begun")  # what is imported for the first one is nobody's
            time.sleep(scale.of(2.0, 0.2))
            before, began = daemon.memory(), time.perf_counter()
            names = [f"P-{number}" for number in range(count - 1)]
            with daemon.spending() as starting:
                for first in range(0, len(names), AT_ONCE):
                    batch = names[first : first + AT_ONCE]
                    place.add_issues(batch)
                    daemon.refresh()
                    _await_begun(place, 1 + first + len(batch))
            starts = time.perf_counter() - began
            time.sleep(scale.of(20.0, 0.5))
            with daemon.spending() as spending:
                began = time.perf_counter()
                time.sleep(scale.of(60.0, 1.2))
                seconds = time.perf_counter() - began
            each = (daemon.memory() - before) / (count - 1) / 1024
    return {
        "pods.share": Value(
            ours=100 * spending.used.own / seconds,
            also={
                "CPU of a start [ms]": 1e3 * starting.used.own / (count - 1),
                "starts [/s]": (count - 1) / starts,
            },
        ),
        "pods.memory": Value(ours=each),
    }


def _await_begun(place: BenchmarkPlace, count: int) -> None:
    """Wait until so many agents have begun; a run that has failed begins anew after a pause."""
    until = time.monotonic() + _BEGIN_BOUND
    while (now := len(place.marks.seen("begun"))) < count:
        assert time.monotonic() < until, f"only {now} of {count} agents have begun"
        time.sleep(0.05)


def _configure(place: BenchmarkPlace, count: int) -> None:
    worker: dict[str, Any] = {
        "kubernetes": {"image": "agent:1", "root": str(place.root / "pods")},
        "kubeconfig": str(place.root / "kubeconfig"),
    }
    agent = {"max_concurrent_agents": count, "stop_grace_ms": 5000}
    place.configure(agent=agent, worker=worker)


@contextmanager
def cluster_in(directory: Path) -> Iterator[None]:
    """Have a cluster in a process of its own; ``directory/kubeconfig`` is for it."""
    which = os.environ.get("SORTIE_BENCHMARK_CLUSTER", "")
    argv = [sys.executable, "-m", "tests.kubernetes_api", str(directory), which]
    cluster = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    try:
        assert cluster.stdout is not None
        assert cluster.stdout.readline().startswith("KUBECONFIG="), "the cluster does not begin"
        yield
    finally:
        cluster.send_signal(signal.SIGINT)  # it ends its pods then
        with suppress(subprocess.TimeoutExpired):
            cluster.wait(_END_BOUND)
        cluster.kill()
        cluster.wait()
        cluster.stdout.close()  # type: ignore[union-attr]


@asynccontextmanager
async def _transport(place: Path) -> AsyncIterator[tuple[Cluster, KubernetesTransport]]:
    root = str(place / "pods")
    pods = KubernetesSettings(image="agent:1", root=root)
    cluster = Cluster(ClusterPlace(host="cluster", kubeconfig=str(place / "kubeconfig")))
    background = Background()
    lease = InstanceLease(cluster, pods.instance, "benchmark", background)
    bounds = Bounds(reattach=30.0)
    try:
        yield (
            cluster,
            KubernetesTransport(cluster, pods, root, "benchmark", background, lease, bounds),
        )
    finally:
        await background.aclose()
        await cluster.aclose()
