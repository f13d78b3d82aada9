"""Warm pods are taken once, make way for issues, and none outlives its daemon and its settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from sortie.config.kubernetes import KubernetesSettings
from sortie.model import HostError, HostTrouble
from sortie.transports.kubernetes import manifests
from sortie.transports.kubernetes.manifests import issue_label
from sortie.transports.kubernetes.objects import ApiObjects
from sortie.transports.kubernetes.transport import KubernetesTransport
from sortie.transports.kubernetes.warm_pods import WarmPods, WarmState
from sortie.workspaces import Workspaces
from tests.kubernetes_api.objects import Json
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.server import Api

LIMIT = 60.0
WARM = "sortie.dev/warm"
DATA = "persistentvolumeclaims"


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pools look at their pods often."""
    for name in ("LOOK_EVERY", "LOOK_AGAIN"):
        monkeypatch.setattr(f"sortie.transports.kubernetes.warm_pods.{name}", 0.1)


def warm(api: Api, kind: str = "pods") -> list[Json]:
    """Return what no issue has."""
    return [one for one in api.objects.items(kind, "agents") if WARM in one["metadata"]["labels"]]


def running(api: Api) -> list[str]:
    """Return the uids of warm pods that run."""
    return [
        pod["metadata"]["uid"]
        for pod in warm(api)
        if pod.get("status", {}).get("phase") == "Running"
        and "deletionTimestamp" not in pod["metadata"]
    ]


def of_issue(api: Api, key: str, kind: str = "pods") -> list[Json]:
    return [
        one
        for one in api.objects.items(kind, "agents")
        if one["metadata"].get("annotations", {}).get("sortie.dev/workspace") == key
    ]


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds."""
    with trio.fail_after(LIMIT):
        while not holds():
            await trio.sleep(0.02)


async def test_an_issue_takes_a_pod_that_runs_and_another_follows(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """It has the labels of the issue then, as has its volume, and goes with the workspace."""
    async with pods_of(api, tmp_path, root, warm=2) as transport:
        await until(lambda: len(running(api)) == 2)
        before = running(api)
        workspaces = Workspaces(str(root), transport)
        with trio.fail_after(LIMIT):
            workspace = await workspaces.prepare("T-1")
        (pod,), (claim,) = of_issue(api, "T-1"), of_issue(api, "T-1", DATA)
        await until(lambda: len(running(api)) == 2)
        with trio.fail_after(LIMIT):
            assert await workspaces.remove("T-1")
        await until(lambda: of_issue(api, "T-1") + of_issue(api, "T-1", DATA) == [])

    assert pod["metadata"]["uid"] in before
    assert (
        pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
        == (claim["metadata"]["name"])
    )
    for one in (pod, claim):
        assert one["metadata"]["labels"]["sortie.dev/issue"]
        assert WARM not in one["metadata"]["labels"]
    assert workspace.path == f"{root}/T-1/T-1"


async def test_each_pod_is_taken_once(
    api: Api, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of those that want the same at the same time one is told that it was changed."""
    keys = [f"T-{number}" for number in range(4)]
    looks = 0

    async def seen_by_all(pool: WarmPods) -> list[Json]:
        nonlocal looks
        found = await look(pool)
        looks += 1
        while looks < len(keys):
            await trio.sleep(0.01)
        return found

    look = WarmPods._warm
    async with pods_of(api, tmp_path, root, warm=3) as transport:
        await until(lambda: len(running(api)) == 3)
        before = running(api)
        monkeypatch.setattr(WarmPods, "_warm", seen_by_all)
        pool, settings = transport.keeper._warm, transport.keeper._pods
        taken: list[str] = []

        async def take(key: str) -> None:
            if await pool.take(key, settings, str(root)):
                taken.append(key)

        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                for key in keys:
                    nursery.start_soon(take, key)
        pods = [of_issue(api, key) for key in taken]

    assert len(taken) >= 3
    assert [len(found) for found in pods] == [1] * len(taken)
    assert {pod["metadata"]["uid"] for (pod,) in pods} >= set(before)


async def test_the_volume_of_a_pod_that_was_taken_stays_with_its_issue(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """The next pod of the issue is a cold one, as its volume is there."""
    async with pods_of(api, tmp_path, root, warm=1) as first:
        await until(lambda: len(running(api)) == 1)
        with trio.fail_after(LIMIT):
            workspace = await Workspaces(str(root), first).prepare("T-1")
            await Workspaces(str(root), first).complete(workspace)
            await first.files.write_file(workspace.path, "work", b"mine")
    (volume,) = of_issue(api, "T-1", DATA)
    async with pods_of(api, tmp_path, root, warm=1) as second:
        await until(lambda: len(running(api)) == 1)
        with trio.fail_after(LIMIT):
            again = await Workspaces(str(root), second).prepare("T-1")
            work = await second.files.read_file(again.path, "work", 10)
        (pod,) = of_issue(api, "T-1")

    assert (again.created, work) == (False, b"mine")
    assert (
        pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"]
        == (volume["metadata"]["name"])
    )


async def test_a_volume_that_could_not_be_labelled_is_labelled_later(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """A pod was taken and the request for its claim was lost: it has to be the issue's before
    anything is written there."""
    async with pods_of(api, tmp_path, root, warm=1) as taker:
        await until(lambda: len(running(api)) == 1)
        (pod,) = warm(api)
        api.objects.merge(
            "pods",
            "agents",
            pod["metadata"]["name"],
            {
                "metadata": {
                    "labels": {WARM: None, "sortie.dev/issue": issue_label("T-1")},
                    "annotations": {"sortie.dev/workspace": "T-1"},
                }
            },
        )
        with trio.fail_after(LIMIT):
            await _make(taker, "T-1")
        (claim,) = of_issue(api, "T-1", DATA)

    assert claim["metadata"]["name"] == pod["metadata"]["name"]
    assert WARM not in claim["metadata"]["labels"]


async def test_nothing_waits_any_more_when_the_daemon_has_ended(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Neither pods nor their volumes."""
    async with pods_of(api, tmp_path, root, warm=2):
        await until(lambda: len(running(api)) == 2)
    await until(lambda: warm(api) == [] and warm(api, DATA) == [])


async def test_a_pod_that_is_being_made_when_the_daemon_ends_does_not_stay(
    api: Api, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server carries out also a request that is broken off, and may be late with it."""
    create, asked, made = ApiObjects.create, trio.Event(), list[bool]()

    async def late(objects: ApiObjects, kind: str, body: Json) -> bool:
        done = trio.Event()

        async def carry_out() -> None:
            await trio.sleep(0.3)
            made.append(await create(objects, kind, body))
            done.set()

        trio.lowlevel.spawn_system_task(carry_out)
        asked.set()
        await done.wait()
        return made[-1]

    monkeypatch.setattr(ApiObjects, "create", late)
    async with pods_of(api, tmp_path, root, warm=1):
        await asked.wait()
    assert made == [True, True]
    await until(lambda: warm(api) == [] and warm(api, DATA) == [])


async def test_answers_that_are_lost_leave_nothing(
    api: Api, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request is made again then, and refused, as its version is an old one by its own effect."""
    delete, change = ApiObjects.delete, ApiObjects.change_metadata

    async def lost_deletion(objects: ApiObjects, kind: str, *given: Any, **named: Any) -> bool:
        return await delete(objects, kind, *given, **named) and kind != "pods"

    async def lost_change(
        objects: ApiObjects, kind: str, name: str, changes: Json, version: str | None = None
    ) -> Json | None:
        changed = await change(objects, kind, name, changes, version)
        return changed if version is None else None

    async with pods_of(api, tmp_path, root, warm=2) as transport:
        await until(lambda: len(running(api)) == 2)
        monkeypatch.setattr(ApiObjects, "delete", lost_deletion)
        monkeypatch.setattr(ApiObjects, "change_metadata", lost_change)
        with trio.fail_after(LIMIT):
            await _make(transport, "T-1")
            taken = len(of_issue(api, "T-1"))
            await until(lambda: len(running(api)) == 2)
            gave_up = await transport.keeper._warm.give_up()
    await until(lambda: warm(api) == [] and warm(api, DATA) == [])

    assert (taken, gave_up) == (1, True)
    assert len(of_issue(api, "T-1", DATA)) == 1


async def test_what_a_killed_daemon_left_ends_with_the_next_life(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Its pods and their volumes; the next life has pods of its own."""
    settings, old = KubernetesSettings(image="agent:1", root=str(root)), "sortie-warm-old"
    another = manifests.owner_labels("another", None)
    for kind, made in (
        ("pods", manifests.warm_pod(settings, str(root), old, another)),
        (DATA, manifests.warm_claim(settings, str(root), old, another)),
    ):
        api.objects.create(kind, "agents", made)
    async with pods_of(api, tmp_path, root, warm=1):
        await until(lambda: len(running(api)) == 1)
        pods, claims = warm(api), warm(api, DATA)

    assert {one["metadata"]["labels"]["sortie.dev/daemon"] for one in pods} != {"another"}
    assert [one["metadata"]["name"] for one in claims] == [one["metadata"]["name"] for one in pods]


async def test_other_settings_replace_what_waits(api: Api, tmp_path: Path, root: Path) -> None:
    """A run takes what was made with its own settings only."""
    async with pods_of(api, tmp_path, root, warm=1) as transport:
        pool = transport.keeper._warm
        await until(lambda: len(running(api)) == 1)
        old = running(api)
        newer = KubernetesSettings(image="agent:2", root=str(root), warm=1)
        pool.use(newer, str(root), transport.end_former)
        await until(lambda: running(api) and running(api) != old)
        (pod,) = warm(api)
        with trio.fail_after(LIMIT):
            await _make(transport, "T-1")
        (of_run,) = of_issue(api, "T-1")
        pool.use(None)
        await until(lambda: warm(api) == [] and warm(api, DATA) == [])

    assert pod["spec"]["containers"][0]["image"] == "agent:2"
    assert of_run["spec"]["containers"][0]["image"] == "agent:1"


async def test_an_issue_that_has_its_volume_goes_before_warm_pods(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Where max_pods are there; for an issue without one no room is needed."""
    async with pods_of(api, tmp_path, root) as first:
        with trio.fail_after(LIMIT):
            await _make(first, "T-1")
    async with pods_of(api, tmp_path, root, warm=2, max_pods=2) as second:
        await until(lambda: len(running(api)) == 2)
        with trio.fail_after(LIMIT):
            await _make(second, "T-1")
            await _make(second, "T-2")
            with pytest.raises(HostError) as caught:
                await _make(second, "T-3")
        alive = api.objects.items("pods", "agents")

    assert len(alive) == 2
    assert caught.value.trouble is HostTrouble.BUSY
    assert warm(api) == []


async def test_a_quota_is_left_to_issues(api: Api, tmp_path: Path, root: Path) -> None:
    """What waits is given up where the namespace takes no more pods; and what is in the way of
    another is told."""
    async with pods_of(api, tmp_path, root) as first:
        with trio.fail_after(LIMIT):
            await _make(first, "T-1")
    api.quota = 1
    told: list[WarmState] = []
    async with pods_of(api, tmp_path, root, warm=1, told=told) as second:
        await until(lambda: len(running(api)) == 1)
        with trio.fail_after(LIMIT):
            await _make(second, "T-1")
        await until(lambda: told[-1].error is not None)
        api.quota = None
        await until(lambda: told[-1] == WarmState(ready=1, wanted=1))

    assert any("exceeded quota" in (state.error or "") for state in told)


async def test_a_pod_that_waits_makes_room_on_a_node(api: Api, tmp_path: Path, root: Path) -> None:
    """For the pod of an issue that no node takes."""
    async with pods_of(api, tmp_path, root) as first:
        with trio.fail_after(LIMIT):
            await _make(first, "T-1")
    async with pods_of(api, tmp_path, root, warm=1) as second:
        await until(lambda: len(running(api)) == 1)
        api.kubelet.unschedulable = "0/1 nodes are available: 1 Insufficient memory."

        async def schedule() -> None:
            await until(lambda: warm(api) == [] and of_issue(api, "T-1"))
            api.kubelet.unschedulable = None
            await api.kubelet.run("agents", of_issue(api, "T-1")[0]["metadata"]["name"])

        with trio.fail_after(LIMIT):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(schedule)
                await _make(second, "T-1")
        await until(lambda: len(running(api)) == 1)


async def test_none_is_made_while_an_issue_waits_for_its_pod(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Pods of issues begin first."""
    api.kubelet.unschedulable = "0/1 nodes are available"
    async with pods_of(api, tmp_path, root, start_timeout_ms=1000, warm=1) as transport:
        with transport.keeper._warm.issue_waiting():
            with pytest.raises(HostError, match="has not begun"):
                await _make(transport, "T-1")
            assert warm(api) == []
        await until(lambda: warm(api) != [])


async def test_one_that_was_evicted_is_replaced(api: Api, tmp_path: Path, root: Path) -> None:
    """With its volume."""
    async with pods_of(api, tmp_path, root, warm=1):
        await until(lambda: len(running(api)) == 1)
        before = running(api)
        (pod,) = warm(api)
        await api.kubelet.fail("agents", pod["metadata"]["name"], reason="Evicted")
        await until(lambda: running(api) and running(api) != before)

    assert pod["metadata"]["name"] not in {
        one["metadata"]["name"] for one in api.objects.items(DATA, "agents")
    }


async def test_an_image_that_cannot_be_pulled_is_told_and_not_tried_over_and_over(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """The kubelet itself tries again; an issue's own pod says the same."""
    api.kubelet.unpullable = 'Back-off pulling image "agent:1"'
    told: list[WarmState] = []
    async with pods_of(api, tmp_path, root, warm=1, told=told) as transport:
        await until(lambda: told and told[-1].error is not None)
        before = [pod["metadata"]["uid"] for pod in warm(api)]
        await trio.sleep(0.5)
        after = [pod["metadata"]["uid"] for pod in warm(api)]
        with trio.fail_after(LIMIT), pytest.raises(HostError, match="ImagePullBackOff"):
            await _make(transport, "T-1")

    assert before == after
    assert told[-1].error == 'ImagePullBackOff: Back-off pulling image "agent:1"'
    assert (told[-1].ready, told[-1].wanted) == (0, 1)


async def test_without_claims_every_pod_of_an_issue_may_be_a_warm_one(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Also that after an eviction."""
    async with pods_of(api, tmp_path, root, warm=1, volume={"kind": "emptyDir"}) as transport:
        for _ in range(2):
            await until(lambda: len(running(api)) == 1)
            before = running(api)
            with trio.fail_after(LIMIT):
                await _make(transport, "T-1")
                (pod,) = of_issue(api, "T-1")
                await transport.keeper.end("T-1")
            transport.forget("T-1")
            assert [pod["metadata"]["uid"]] == before

    assert api.objects.items(DATA, "agents") == []


async def _make(transport: KubernetesTransport, key: str) -> None:
    assert await transport.pod(key, make=True) is not None
