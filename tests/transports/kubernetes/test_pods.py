"""Pods are made for workspaces and end with them; what is in the way is told in words."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest
import trio

from sortie.model import (
    HostError,
    HostTrouble,
    OccupiedError,
    ProcessesLeft,
    RunId,
    TransportError,
)
from sortie.transports import COOKIE, Command
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.transports.remote.launch import Bounds
from sortie.worker.outcome import host_error_behind
from sortie.workspaces import Workspaces
from tests.contract.transport.launching import everything
from tests.kubernetes_api.objects import Refused
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.real_cluster import RealApi
from tests.kubernetes_api.server import Api, Fault
from tests.run_ids import own_run_id

LIMIT = 60.0
RUN = own_run_id("run")
POD = r"pods/sortie-t-1-[0-9a-f]{10}"


def kinds(api: Api | RealApi) -> list[str]:
    """Return what there is but leases."""
    return sorted(kind for kind, _, _ in api.objects.found if kind != "leases")


async def remain(api: Api, *wanted: str) -> None:
    """Wait until there is no more than this: claims go a moment after they were deleted."""
    with trio.fail_after(LIMIT):
        while kinds(api) != list(wanted):
            await trio.sleep(0.05)


def in_workspace(path: str, *argv: str, run: str = RUN) -> Command:
    env = {"PATH": os.environ["PATH"], COOKIE: run}
    return Command(argv=argv, cwd=path, env=env, grace=1.0)


async def said_by(transport: KubernetesTransport, command: Command) -> bytes:
    """Run a program that ends well; return its stdout."""
    async with transport.process(command) as process:
        said = await everything(process)
        exit_ = await process.wait()
    assert (exit_.status, said[2]) == (0, b"")
    return said[1]


async def test_a_workspace_has_a_pod_and_a_claim_until_it_is_removed(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """Each has its own, made with the workspace, and nothing is left of either."""
    workspaces = Workspaces(str(root), transport)
    with trio.fail_after(LIMIT):
        one = await workspaces.prepare("T-1")
        two = await workspaces.prepare("T/2")
        made = kinds(api)
        removed = [await workspaces.remove(name) for name in ("T-1", "T/2", "T-3")]

    assert one.path == f"{root}/T-1/T-1"
    assert os.path.dirname(one.path) != os.path.dirname(two.path)
    assert (one.created, two.created) == (True, True)
    assert made == ["persistentvolumeclaims"] * 2 + ["pods"] * 2
    assert removed == [True, True, False]
    await remain(api)
    assert list(root.glob("T*")) == []


async def test_a_workspace_is_removed_by_its_own_path(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """As recovery knows it: below the directory in which all of an issue is."""
    with trio.fail_after(LIMIT):
        workspace = await Workspaces(str(root), transport).prepare("T-1")
        await Workspaces(str(root), transport).complete(workspace)
        by_path = Workspaces(os.path.dirname(workspace.path), transport)
        await by_path.verify(workspace.path)
        assert await by_path.is_complete(workspace.key)
        assert await by_path.remove("T-1")
    await remain(api)


async def test_a_workspace_is_made_again_while_its_volume_still_goes(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """A look at it makes nothing; then the claim is waited for, and a new one made with the pod.

    A pod that was made meanwhile would wait for a claim that nobody makes.
    """
    api.kubelet.claims_stay = True
    workspaces = Workspaces(str(root), transport)

    async def have_it_go() -> None:
        await trio.sleep(0.5)
        api.kubelet.claims_stay = False

    with trio.fail_after(LIMIT):
        await workspaces.prepare("T-1")
        (before,) = api.objects.items("persistentvolumeclaims", "agents")
        await workspaces.remove("T-1")
        seen = await transport.files.contained(str(root), f"{root}/T-1")
        left = kinds(api)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(have_it_go)
            again = await workspaces.prepare("T-1")
        (after,) = api.objects.items("persistentvolumeclaims", "agents")

    assert (seen, left) == (False, ["persistentvolumeclaims"])
    assert again.created
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_nothing_is_made_by_what_only_looks(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """A workspace whose pod is not there is one that is not there."""
    workspaces = Workspaces(str(root), transport)
    with trio.fail_after(LIMIT):
        await workspaces.reach()
        await workspaces.check()
        assert await workspaces.is_complete("T-1")
        assert not await transport.files.contained(str(root), f"{root}/T-1")
        assert await transport.occupied(f"{root}/T-1") == ()
        assert await transport.clear(f"{root}/T-1", grace=0) == 0
        with pytest.raises(TransportError, match="in no pod"):
            await said_by(transport, in_workspace(f"{root}/T-1/T-1", "true"))

    assert kinds(api) == []


async def test_what_a_pod_says_of_itself(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """Labels name instance, issue, life and run; it has no token, no right, and one volume."""
    workspaces = Workspaces(str(root), transport)
    with trio.fail_after(LIMIT):
        workspace = await workspaces.prepare("T-1")
        await said_by(transport, in_workspace(workspace.path, "true", run="run-7"))
    (pod,) = api.objects.items("pods", "agents")
    spec = pod["spec"]

    assert pod["metadata"]["labels"]["sortie.dev/run"] == "run-7"
    assert pod["metadata"]["labels"]["sortie.dev/instance"] == "sortie"
    assert pod["metadata"]["labels"].keys() >= {"sortie.dev/issue", "sortie.dev/daemon"}
    assert pod["metadata"]["annotations"] == {"sortie.dev/workspace": "T-1"}
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False
    assert len(spec["volumes"]) == 1


async def test_a_secret_fills_a_variable_of_programs(api: Api, tmp_path: Path, root: Path) -> None:
    """The kubelet gives it to the pod, and no other variable of the pod reaches a program."""
    data = {"key": base64.b64encode(b"sk-of-the-cluster").decode()}
    api.objects.create("secrets", "agents", {"metadata": {"name": "agent"}, "data": data})
    env = {"AGENT_KEY": {"secret": "agent", "key": "key"}}
    async with pods_of(api, tmp_path, root, env=env) as transport:
        with trio.fail_after(LIMIT):
            workspace = await Workspaces(str(root), transport).prepare("T-1")
            script = "echo $AGENT_KEY; echo ${HOSTNAME-none}; echo $HOME"
            command = in_workspace(workspace.path, "sh", "-c", script)
            said = await said_by(transport, command)

    assert said.decode() == f"sk-of-the-cluster\nnone\n{root}/@home\n"
    assert "sk-of-the-cluster" not in str(api.objects.items("pods", "agents"))


async def test_a_pod_of_an_earlier_life_is_ended_and_its_volume_stays(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Before anything else; with it ends what ran there."""
    async with pods_of(api, tmp_path, root) as first:
        with trio.fail_after(LIMIT):
            workspace = await Workspaces(str(root), first).prepare("T-1")
            await first.files.write_file(workspace.path, "work", b"mine")
    (before,) = api.objects.items("pods", "agents")
    async with pods_of(api, tmp_path, root) as second:
        with trio.fail_after(LIMIT):
            ended = await second.sweep([RUN], grace=0)
            left = api.objects.items("pods", "agents")
            work = await second.files.read_file(workspace.path, "work", 10)
    (after,) = api.objects.items("pods", "agents")

    assert (ended, left, work) == (1, [], b"mine")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]


async def test_an_empty_dir_ends_with_its_pod(api: Api, tmp_path: Path, root: Path) -> None:
    """Then the workspace is made anew."""
    volume = {"kind": "emptyDir"}
    async with pods_of(api, tmp_path, root, volume=volume) as first:
        with trio.fail_after(LIMIT):
            workspace = await Workspaces(str(root), first).prepare("T-1")
            await first.files.write_file(workspace.path, "work", b"mine")
    async with pods_of(api, tmp_path, root, volume=volume) as second:
        with trio.fail_after(LIMIT):
            again = await Workspaces(str(root), second).prepare("T-1")
            work = await second.files.read_file(again.path, "work", 10)

    assert (again.created, work, kinds(api)) == (True, None, ["pods"])


async def refusal(transport: KubernetesTransport, root: Path) -> HostError:
    """Return why a workspace could not be made."""
    with trio.fail_after(LIMIT), pytest.raises(HostError) as caught:
        await transport.pod("T-1", make=True)
    return caught.value


async def test_no_node_has_room(api: Api, tmp_path: Path, root: Path) -> None:
    """The scheduler's words are told when the time is over, and the pod keeps its place."""
    api.kubelet.unschedulable = "0/3 nodes are available: 3 Insufficient cpu."
    async with pods_of(api, tmp_path, root, start_timeout_ms=1000) as transport:
        error = await refusal(transport, root)
        while "nothing tells why" in str(error):  # the scheduler has not looked at it yet
            error = await refusal(transport, root)

    assert "has not begun in 1 s: Unschedulable: 0/3 nodes are available" in str(error)
    assert "wait for room in the cluster" in str(error)
    assert kinds(api) == ["persistentvolumeclaims", "pods"]


async def test_an_image_that_cannot_be_pulled(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """It is told at once, and the next pod is made with the settings of then."""
    api.kubelet.unpullable = 'Back-off pulling image "agent:1"'
    error = await refusal(transport, root)
    api.kubelet.unpullable = None
    with trio.fail_after(LIMIT):
        pod = await transport.pod("T-1", make=True)

    assert "ImagePullBackOff: Back-off pulling image" in str(error)
    assert "worker.kubernetes.image" in str(error)
    assert pod is not None


async def test_quotas_of_both_sides_are_told_as_no_room_now(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """That of the namespace, and max_pods."""
    api.quota = 0
    async with pods_of(api, tmp_path, root, max_pods=1) as transport:
        quota = await refusal(transport, root)
        api.quota = None
        with trio.fail_after(LIMIT):
            await transport.pod("T-0", make=True)
        most = await refusal(transport, root)

    assert (quota.trouble, most.trouble) == (HostTrouble.BUSY, HostTrouble.BUSY)
    assert "exceeded quota: agents" in str(quota)
    assert "raise the ResourceQuota" in str(quota)
    assert "has 1 pods, and worker.kubernetes.max_pods allows no more" in str(most)


async def test_a_right_that_is_missing_is_named(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """By the words of the API server."""
    api.denied = frozenset({("create", "pods")})

    told = str(await refusal(transport, root))
    assert "pods is forbidden: User " in told
    assert 'cannot create resource "pods" in API group "" in the namespace' in told
    assert "(403)" in told


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.stand_in
async def test_a_request_that_is_put_off_is_made_again(
    api: Api, transport: KubernetesTransport, root: Path, status: int
) -> None:
    """After the pause that the server asks for."""
    put_off = Refused(status, "TooManyRequests", "try again later", retry_after=1)
    api.faults.append(Fault("POST", "/pods$", put_off, times=2))
    with trio.fail_after(LIMIT):
        assert await transport.pod("T-1", make=True) is not None

    assert api.faults == []
    assert sum(1 for one in api.requests if one[0] == "POST" and one[1].endswith("/pods")) == 3


@pytest.mark.stand_in
async def test_a_watch_that_has_expired_begins_anew(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """410 for the watch, and no change is missed."""
    expired = Refused(410, "Expired", "too old resource version")
    api.kubelet.start = 0.5
    api.faults.append(Fault("GET", "watch=1", expired))
    with trio.fail_after(LIMIT):
        assert await transport.pod("T-1", make=True) is not None

    assert api.faults == []


@pytest.mark.stand_in
async def test_a_pod_that_somebody_else_has_made_meanwhile(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """409 is no error: it is looked at, and is used where it is ours."""
    there = Refused(409, "AlreadyExists", 'pods "x" already exists')
    api.faults.append(Fault("POST", "/pods$", there))
    with trio.fail_after(LIMIT):
        assert await transport.pod("T-1", make=True) is not None


async def test_a_pod_of_an_earlier_life_that_does_not_go_is_named(
    api: Api, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node is away: nothing begins beside it, and other workspaces have their pods."""
    monkeypatch.setattr("sortie.transports.kubernetes.objects.END_BOUND", 0.5)
    async with pods_of(api, tmp_path, root) as first:
        with trio.fail_after(LIMIT):
            await first.pod("T-1", make=True)
    api.kubelet.stuck = True
    async with pods_of(api, tmp_path, root) as second:
        with trio.fail_after(LIMIT):
            ended = await second.sweep([RUN], grace=0)
            with pytest.raises(ProcessesLeft, match="has not gone in"):
                await second.pod("T-1", make=True)
            other = await second.pod("T-2", make=True)
        api.kubelet.stuck = False

    assert ended == 0
    assert other is not None


@pytest.mark.stand_in
async def test_a_pod_that_does_not_go_is_in_the_way_of_its_workspace_alone(
    api: Api, transport: KubernetesTransport, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its workspace is occupied, for which it is waited only once; others of the namespace are made
    as before."""
    workspaces = Workspaces(str(root), transport)
    with trio.fail_after(LIMIT):
        await workspaces.prepare("T-1")
        api.kubelet.stuck = True
        (pod,) = api.objects.items("pods", "agents")
        api.delete_pod("agents", pod["metadata"]["name"])
        transport.forget("T-1")
        monkeypatch.setattr("sortie.transports.kubernetes.objects.END_BOUND", 0.5)
        monkeypatch.setattr("sortie.transports.kubernetes.objects.STAYED_BOUND", 0.1)
        with pytest.raises(OccupiedError, match=r"has not gone in 0.5 s") as refused:
            await workspaces.prepare("T-1")
        with pytest.raises(OccupiedError, match=r"has not gone in 0.1 s"):
            await workspaces.prepare("T-1")
        other = await workspaces.prepare("T-2")
        api.kubelet.stuck = False

    assert host_error_behind(refused.value) is None
    assert other.created


@pytest.mark.stand_in
async def test_a_node_that_is_away_is_in_the_way_of_its_own_pods_alone(
    api: Api, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that was lost there is an interruption of its run; its pod goes when the node is
    back, and until then nothing begins beside it."""
    monkeypatch.setattr("sortie.transports.kubernetes.objects.END_BOUND", 0.5)
    beats, away = tmp_path / "beats", list[bool]()
    async with pods_of(api, tmp_path, root, bounds=Bounds(reattach=2.0, beat=0.5)) as transport:
        with trio.fail_after(LIMIT):
            workspaces = Workspaces(str(root), transport)
            workspace = await workspaces.prepare("T-1")
            await workspaces.complete(workspace)
            path = workspace.path
            (pod,) = api.objects.items("pods", "agents")
            script = f"echo here; while :; do date >>{beats}; sleep 0.1; done"
            command = in_workspace(path, "sh", "-c", script)
            following = transport.following_links(RunId(command.env[COOKIE]), away.append)
            with pytest.raises(HostError) as lost, following:
                async with transport.process(command) as process:
                    await anext(process.output())
                    api.kubelet.lose_node("agents", pod["metadata"]["name"])
                    api.cut_links()
                    await process.wait()
            with pytest.raises(OccupiedError, match="has not gone in"):
                await workspaces.prepare("T-1")
            other = await workspaces.prepare("T-2")
            monkeypatch.setattr("sortie.transports.kubernetes.objects.END_BOUND", LIMIT)
            api.kubelet.lost.clear()
            again = await workspaces.prepare("T-1")
            before = beats.read_bytes()
            await said_by(transport, in_workspace(again.path, "sleep", "0.5"))

    assert lost.value.trouble is HostTrouble.DISRUPTED
    assert "could not be reached, as its node" in str(lost.value)
    assert away == [True, False]
    assert other.created
    assert not again.created
    assert beats.read_bytes() == before


async def test_rescued_work_keeps_its_volume(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """A mirror with rescued work stays where it is, and says so with a label; no pod is left, and
    none is made by who only looks, but by who makes the workspace again."""
    with trio.fail_after(LIMIT):
        workspace = await Workspaces(str(root), transport).prepare("T-1")
        own = os.path.dirname(workspace.path)
        script = (
            'git init -q --bare "$0"; tree=$(git --git-dir="$0" mktree </dev/null);'
            ' work=$(git --git-dir="$0" -c user.name=a -c user.email=a commit-tree -m w "$tree");'
            ' git --git-dir="$0" update-ref refs/sortie/rescue/T-1/run "$work"'
        )
        mirror = f"{own}/@repositories/x.git"
        await said_by(transport, in_workspace(workspace.path, "sh", "-c", script, mirror))
        removed = await Workspaces(str(root), transport).remove("T-1")
        looked = await transport.pod("T-1")
    (claim,) = api.objects.items("persistentvolumeclaims", "agents")

    assert removed
    assert api.objects.items("pods", "agents") == []
    assert claim["metadata"]["labels"]["sortie.dev/rescued"] == "true"
    assert looked is None
    with trio.fail_after(LIMIT):
        await Workspaces(str(root), transport).prepare("T-1")
    (claim,) = api.objects.items("persistentvolumeclaims", "agents")
    assert "sortie.dev/rescued" not in claim["metadata"]["labels"]
    assert Path(mirror).is_dir()


async def test_a_pod_with_the_name_of_one_that_is_gone_gets_no_program_of_its_run(
    api: Api, transport: KubernetesTransport, root: Path
) -> None:
    """Between the look at a pod and its start another may have been made under its name."""
    with trio.fail_after(LIMIT):
        await Workspaces(str(root), transport).prepare("T-1")
        (pod,) = api.objects.items("pods", "agents")
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]

        await transport.keeper.note_run(name, uid, RUN)
        with pytest.raises(HostError, match=f"pod {name} was deleted"):
            await transport.keeper.note_run(name, "a pod before it", "run-2")
