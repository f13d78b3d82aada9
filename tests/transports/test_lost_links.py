"""Who is told that the link to programs of a run is lost."""

from __future__ import annotations

from sortie.model import RunId
from sortie.transports.host_health import HostHealth, MonitoredTransport
from sortie.transports.lost_links import LostLinks, OutlivesLinks
from sortie.transports.walls import SandboxedTransport
from tests.transports.fake import FakeTransport

ONE, OTHER = RunId("run-1"), RunId("run-2")


def test_only_the_first_loss_and_the_last_return_are_told() -> None:
    """A run may have several programs; those of other runs are not its."""
    links, told = LostLinks(), list[bool]()

    with links.followed(ONE, told.append):
        links.add(OTHER, "x")
        links.add(ONE, "a")
        links.add(ONE, "b")
        links.add(ONE, "a")
        links.discard(ONE, "a")
        before = list(told)
        links.discard(ONE, "b")
        links.discard(ONE, "b")

    links.add(ONE, "a")
    assert (before, told) == ([True], [True, False])


def test_a_link_that_is_lost_already_is_told_at_once() -> None:
    """So a turn may begin without one."""
    links, told = LostLinks(), list[bool]()
    links.add(ONE, "a")

    with links.followed(ONE, told.append):
        pass

    assert told == [True]


def test_the_account_of_a_host_and_a_wall_pass_it_on() -> None:
    """Of a host whose programs outlive links; of others there is nothing to tell."""

    class Short(FakeTransport):
        following_links = None  # type: ignore[assignment]

    def nothing(*_: object) -> None:
        pass

    health = HostHealth(troubled=nothing, reached=nothing, reaped=nothing)
    host, told = FakeTransport(host="east"), list[bool]()
    monitored = MonitoredTransport(host, health)
    walled = SandboxedTransport(monitored)
    assert isinstance(walled, OutlivesLinks)
    host.lost_links.add(ONE, "a")

    with walled.following_links(ONE, told.append):
        host.lost_links.discard(ONE, "a")
    with MonitoredTransport(Short(), health).following_links(ONE, told.append):
        pass

    assert told == [True, False]
