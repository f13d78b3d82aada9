"""One daemon has an instance at a time, whatever the clocks say."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from sortie.model import HostError, HostTrouble
from sortie.transports.kubernetes.transport import KubernetesTransport
from tests.kubernetes_api.pods import pods_of
from tests.kubernetes_api.server import Api

LEASE = ("leases", "agents", "sortie-sortie")


async def refusal(transport: KubernetesTransport) -> HostError:
    """Return why the pods cannot be used."""
    with pytest.raises(HostError) as caught:
        await transport.end_former()
    assert caught.value.trouble is HostTrouble.OCCUPIED
    return caught.value


async def refused(transport: KubernetesTransport) -> str:
    """Return in words why the pods cannot be used."""
    return str(await refusal(transport))


async def test_a_second_daemon_is_refused_and_ends_no_pod(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """It is told who has the pods, and may have them when that one has ended in good order."""
    with trio.fail_after(60):
        async with pods_of(api, tmp_path, root, token="first") as first:
            await first.pod("T-1", make=True)
            async with pods_of(api, tmp_path, root, token="second") as second:
                told = await refused(second)
                left = len(api.objects.items("pods", "agents"))
        async with pods_of(api, tmp_path, root, token="third") as third:
            ended = await third.end_former()

    assert "another daemon (first) has it" in told
    assert "give each daemon a worker.kubernetes.instance of its own" in told
    assert (left, ended) == (1, 1)


async def test_daemons_of_different_instances_share_a_namespace(
    api: Api, tmp_path: Path, root: Path
) -> None:
    """Neither sees the pods of the other."""
    with trio.fail_after(60):
        async with (
            pods_of(api, tmp_path, root) as one,
            pods_of(api, tmp_path, root, instance="other") as other,
        ):
            await one.pod("T-1", make=True)
            await other.pod("T-1", make=True)

    assert len(api.objects.items("pods", "agents")) == 2


async def test_a_daemon_that_was_killed_is_waited_for(
    api: Api, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as its lease may be renewed; times that stand in it count for nothing."""
    monkeypatch.setattr("sortie.transports.kubernetes.instance_lease.LEASE", 0.6)
    spec = {"holderIdentity": "killed", "renewTime": "2099-01-01T00:00:00.000000Z"}
    api.objects.create("leases", "agents", {"metadata": {"name": LEASE[2]}, "spec": spec})
    with trio.fail_after(60):
        async with pods_of(api, tmp_path, root, token="next") as following:
            first = await refused(following)
            await trio.sleep(0.4)
            lease = api.objects.get(*LEASE)
            renewed = {**spec, "renewTime": "2099-01-01T00:00:01.000000Z"}
            api.objects.change("leases", "agents", {**lease, "spec": renewed})
            second = await refused(following)
            await trio.sleep(0.7)
            await following.end_former()
            holder = api.objects.get(*LEASE)["spec"]["holderIdentity"]

    assert "(killed)" in first
    assert "(killed)" in second
    assert holder == "next"


async def test_it_is_told_when_a_killed_daemons_lease_ends(
    api: Api, tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time shrinks from look to look, and after it the instance can be had."""
    monkeypatch.setattr("sortie.transports.kubernetes.instance_lease.LEASE", 4.0)
    spec = {"holderIdentity": "killed"}
    api.objects.create("leases", "agents", {"metadata": {"name": LEASE[2]}, "spec": spec})
    with trio.fail_after(60):
        async with pods_of(api, tmp_path, root, token="next") as following:
            first = (await refusal(following)).retry_after
            second = (await refusal(following)).retry_after
            await trio.sleep(second)
            await following.end_former()

    assert 4.0 < first <= 4.5
    assert second < first


async def test_of_two_that_take_it_one_is_refused(api: Api, tmp_path: Path, root: Path) -> None:
    """The version that was read is named with the write."""
    results = []

    async def take(transport: KubernetesTransport) -> None:
        try:
            await transport.end_former()
        except HostError as exc:
            results.append(str(exc))
        else:
            results.append("")

    spec = {"holderIdentity": ""}
    api.objects.create("leases", "agents", {"metadata": {"name": LEASE[2]}, "spec": spec})
    with trio.fail_after(60):
        async with (
            pods_of(api, tmp_path, root, token="one") as one,
            pods_of(api, tmp_path, root, token="two") as two,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(take, one)
            nursery.start_soon(take, two)

    assert results.count("") == 1
