"""A newer leader of a workflow takes its pods over from an older one, whatever that one does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from sortie.model import HostError, TransportError
from sortie.resources.lease import LEASE, Lease, LeaseLost, boot_time
from sortie.transports import COOKIE, Command, Script
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.workspaces import Workspaces
from tests.kubernetes_api.objects import Json
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.server import Api
from tests.run_ids import own_run_id
from tests.transports.leftovers import holders

CLAIMS = "persistentvolumeclaims"
TAKEN = "a newer leader of this workflow has taken the host over"
TOKEN = "sortie.dev/token"
LIMIT = 120.0


def lease(token: int, workflow: str = "flow") -> Lease:
    return Lease(workflow, token, f"alpha:{token}", boot_time() + 3600)


@contextmanager
def leading(given: Lease) -> Iterator[Lease]:
    """Work for the workflow with a lease while the block lasts."""
    before = LEASE.set(given)
    try:
        yield given
    finally:
        LEASE.reset(before)


def script(root: Path, name: str) -> Script:
    text = f": >{root}/{name}"
    return Script(purpose="touch", text=text, arguments=(), cwd=str(root), env={}, limit=1)


def tokens(api: Api, kind: str) -> list[str]:
    return [one["metadata"]["labels"][TOKEN] for one in api.objects.items(kind, "agents")]


async def workspace(transport: KubernetesTransport, root: Path) -> str:
    return (await Workspaces(str(root), transport).prepare("T-1")).path


@pytest.mark.parametrize("sandboxes", ["never", pytest.param("always", marks=pytest.mark.full)])
async def test_a_newer_leader_ends_the_pods_of_one_that_lives(
    api: Api, tmp_path: Path, root: Path, sandboxes: str
) -> None:
    """At once, and before anything of it runs; the older one is refused by the cluster's lease and
    in the new pod, which has the name of its own."""
    if sandboxes == "always":
        api.have_sandboxes()
    daemon = partial(pods_of, api, tmp_path, root, sandboxes=sandboxes, start_timeout_ms=60_000)
    older, newer = lease(7), lease(8)
    with trio.fail_after(LIMIT):
        async with (
            daemon(token="old") as old,
            daemon(token="new") as new,
        ):
            with leading(older):
                path = await workspace(old, root)
                cookie = own_run_id("taken-over")
                env = {"PATH": os.environ["PATH"], COOKIE: cookie}
                command = Command(argv=("sh", "-c", "echo up; sleep 1000"), cwd=path, env=env)
                running = old.process(command)
                process = await running.__aenter__()
                await anext(process.output())
            before = (tokens(api, "pods"), tokens(api, CLAIMS), len(holders(cookie)))

            with leading(newer):
                await new.end_former()
                left = holders(cookie)
                await workspace(new, root)
                await new.run_script(script(Path(path), "by-new"))
            after = (tokens(api, "pods"), tokens(api, CLAIMS))
            with leading(older):
                changes = (
                    partial(old.run_script, script(Path(path), "by-old")),
                    partial(old.files.write_file, path, "by-old", b""),
                    partial(_run, old, Command(argv=("touch", "by-old"), cwd=path, env=env)),
                    old.keeper.end_former,
                    partial(old.keeper.running, "T-1", make=True),
                )
                for change in changes:
                    with pytest.raises(LeaseLost, match=TAKEN):
                        await change()
            with leading(older), pytest.raises((LeaseLost, TransportError)):
                await running.__aexit__(None, None, None)
                raise LeaseLost("it was gone")
            instance = api.objects.get("leases", "agents", "sortie-sortie")["metadata"]
            pods = len(api.objects.items("pods", "agents"))

    assert before[:2] == (["7"], ["7"])
    assert before[2] >= 1
    assert (left, after, pods) == ([], (["8"], ["8"]), 1)
    assert instance["annotations"] == {"sortie.dev/leads": "flow", TOKEN: "8"}
    assert sorted(os.listdir(path)) == ["by-new"]


async def _run(transport: KubernetesTransport, command: Command) -> None:
    async with transport.process(command) as process:
        await process.wait()


async def test_an_older_leader_is_refused_the_instance(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Also when the newer one has let go of it; another workflow is refused as ever."""
    with trio.fail_after(LIMIT):
        async with (
            pods_of(api, tmp_path, root, token="old") as old,
            pods_of(api, tmp_path, root, token="other") as other,
        ):
            async with pods_of(api, tmp_path, root, token="new") as new:
                with leading(lease(8)):
                    await new.end_former()
                with leading(lease(9, "other")), pytest.raises(HostError, match="another daemon"):
                    await other.end_former()
                with leading(lease(7)), pytest.raises(LeaseLost, match=TAKEN):
                    await old.end_former()
            with leading(lease(7)), pytest.raises(LeaseLost, match=TAKEN):
                await old.end_former()


async def test_nothing_is_changed_when_the_lease_is_over(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """No request but those that look reaches the server, nor does a command reach the pod."""
    with trio.fail_after(LIMIT):
        async with pods_of(api, tmp_path, root, token="one") as one:
            with leading(lease(1)) as given:
                path = await workspace(one, root)
                before = versions(api)
                given.valid_until = 0.0
                changes = (
                    one.end_former,
                    partial(one.run_script, script(Path(path), "late")),
                    partial(one.keeper.note_run, "x", "uid", "run"),
                    partial(one.keeper.remove, "T-1"),
                    partial(one.keeper.running, "T-2", make=True),
                )
                for change in changes:
                    with pytest.raises(LeaseLost, match="is over"):
                        await change()
            after = versions(api)

    assert after == before
    assert not (Path(path) / "late").exists()


def versions(api: Api) -> list[Json]:
    kinds = ("pods", CLAIMS, "leases")
    found = [one["metadata"] for kind in kinds for one in api.objects.items(kind, "agents")]
    return [{key: one[key] for key in ("name", "resourceVersion")} for one in found]


async def test_warm_pods_are_made_by_the_lease(api: Api, tmp_path: Path, root: Path) -> None:
    """By a task in the background; none is made when the lease is over, and the next leader ends
    those that are there."""
    with trio.fail_after(LIMIT):
        with leading(lease(3)) as given:
            async with pods_of(api, tmp_path, root, token="old", warm=1):
                while not api.objects.items("pods", "agents"):
                    await trio.sleep(0.02)
                made = (tokens(api, "pods"), tokens(api, CLAIMS))
                given.valid_until = 0.0
                with leading(lease(4)):
                    async with pods_of(api, tmp_path, root, token="new") as new:
                        await new.end_former()
                        left = len(api.objects.items("pods", "agents"))
                given.valid_until = boot_time() + 3600

    assert (made, left) == ((["3"], ["3"]), 0)
