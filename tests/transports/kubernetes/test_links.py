"""Programs in pods outlive their links; where the pod itself has gone, that is told at once."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from sortie.model import HostError, HostTrouble
from sortie.transports import COOKIE, Command, Process, Stdin
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.transports.remote.launch import Bounds
from sortie.workspaces import Workspaces
from tests.contract.transport.launching import everything
from tests.kubernetes_api.objects import Refused
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.server import Api, Fault
from tests.run_ids import own_run_id

pytestmark = pytest.mark.full
LIMIT = 90.0
EVICTED = {"reason": "Evicted", "message": "The node was low on resource: memory."}


@pytest.fixture
async def workspace(transport: KubernetesTransport, root: Path) -> str:
    """Give the path of a workspace in a pod."""
    with trio.fail_after(LIMIT):
        return (await Workspaces(str(root), transport).prepare("T-1")).path


def command(path: str, script: str, stdin: Stdin | None = None) -> Command:
    env = {"PATH": os.environ["PATH"], COOKIE: own_run_id("run")}
    return Command(argv=("sh", "-c", script), cwd=path, env=env, stdin=stdin, grace=1.0)


async def until(output: AsyncIterator[tuple[int, bytes]], wanted: bytes) -> bytes:
    """Read until something has been said; return what came."""
    said = b""
    while wanted not in said:
        said += (await anext(output))[1]
    return said


async def test_output_is_whole_whenever_links_are_cut(
    api: Api, transport: KubernetesTransport, workspace: str
) -> None:
    """No byte is lost and none comes twice; the exit is known."""
    chance = random.Random(7)
    script = "i=0; while [ $i -lt 400 ]; do seq $i 400; i=$((i+1)); done"
    wanted = "".join(f"{n}\n" for i in range(400) for n in range(i, 401)).encode()
    digest, cuts, read = hashlib.sha256(), 0, 0
    with trio.fail_after(LIMIT):
        async with transport.process(command(workspace, script)) as process:
            async for _, chunk in process.output():
                digest.update(chunk)
                read += len(chunk)
                if cuts < 5 and chance.random() < 0.5:
                    cuts += api.cut_links() > 0
            exit_ = await process.wait()

    assert cuts > 0
    assert (read, digest.digest()) == (len(wanted), hashlib.sha256(wanted).digest())
    assert exit_.status == 0


async def test_a_conversation_goes_on_over_a_new_link(
    api: Api, transport: KubernetesTransport, workspace: str
) -> None:
    """What is written while there is no link arrives once, and in order."""
    with trio.fail_after(LIMIT):
        async with transport.process(command(workspace, "exec cat", Stdin.PIPE)) as process:
            assert process.stdin is not None
            output = process.output()
            await process.stdin.send_all(b"one\n")
            said = await until(output, b"one\n")
            api.cut_links()
            await process.stdin.send_all(b"two\n")
            said += await until(output, b"two\n")
            api.cut_links()
            await process.stdin.send_all(b"three\n")
            await process.stdin.aclose()
            async for _, chunk in output:
                said += chunk
            exit_ = await process.wait()

    assert (said, exit_.status) == (b"one\ntwo\nthree\n", 0)


@pytest.mark.stand_in
async def test_an_api_server_that_is_away_for_a_while(
    api: Api, transport: KubernetesTransport, workspace: str
) -> None:
    """The program goes on in its pod, and is found again."""
    away = Refused(503, "ServiceUnavailable", "the server is currently unable to handle it")
    with trio.fail_after(LIMIT):
        script = "echo begun; sleep 3; echo done"
        async with transport.process(command(workspace, script)) as process:
            output = process.output()
            said = await until(output, b"begun\n")
            api.faults += [Fault("EXEC", "exec", away, times=3), Fault("GET", "pods/", away, 3)]
            api.cut_links()
            async for _, chunk in output:
                said += chunk
            exit_ = await process.wait()

    assert (said, exit_.status) == (b"begun\ndone\n", 0)
    assert api.faults == []


async def lost(process: Process) -> HostError:
    """Return why a program was lost."""
    await everything(process)
    with pytest.raises(HostError) as caught:
        await process.wait()
    return caught.value


async def test_an_evicted_pod_is_an_interruption_that_is_explained(
    api: Api, transport: KubernetesTransport, workspace: str
) -> None:
    """Soon, with the node's words; the next use has a new pod with the same volume."""
    with trio.fail_after(LIMIT):
        await transport.files.write_file(workspace, "work", b"mine")
        with pytest.raises(HostError) as leaving:
            async with transport.process(command(workspace, "echo here; sleep 1000")) as process:
                (name,) = [one["metadata"]["name"] for one in api.objects.items("pods", "agents")]
                await api.kubelet.fail("agents", name, **EVICTED)
                error = await lost(process)
        work = await transport.files.read_file(workspace, "work", 10)

    assert error.trouble is HostTrouble.DISRUPTED
    assert "has ended: Evicted: The node was low on resource: memory." in str(error)
    assert leaving.value.trouble is HostTrouble.DISRUPTED
    assert work == b"mine"


@pytest.mark.stand_in
async def test_a_program_that_nobody_comes_back_to_ends_by_itself(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Its lease in the pod is over; nothing of it is left."""
    bounds = Bounds(reattach=2.0, beat=0.5)
    beats = tmp_path / "beats"
    async with pods_of(api, tmp_path, root, bounds=bounds) as transport:
        with trio.fail_after(LIMIT):
            path = (await Workspaces(str(root), transport).prepare("T-1")).path
            away = Refused(503, "ServiceUnavailable", "unavailable")
            script = f"echo here; while :; do date >>{beats}; sleep 0.1; done"
            with pytest.raises(HostError):
                async with transport.process(command(path, script)) as process:
                    await until(process.output(), b"here")
                    api.faults += [Fault("EXEC", "exec", away, times=10**6)]
                    api.cut_links()
                    await process.wait()
            while True:
                before = beats.stat().st_size
                await trio.sleep(0.5)
                if beats.stat().st_size == before:
                    break
            api.faults.clear()
