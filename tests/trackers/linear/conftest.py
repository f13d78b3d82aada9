"""A Linear with one team, and trackers of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from sortie.trackers import Tracker
from tests.trackers.linear.rig import linear, opened
from tests.trackers.linear.service import LinearService
from tests.trackers.server.serving import TestServer


@pytest.fixture
def pair() -> Iterator[tuple[LinearService, TestServer]]:
    with linear() as both:
        yield both


@pytest.fixture
def service(pair: tuple[LinearService, TestServer]) -> LinearService:
    """The workspace of Linear."""
    return pair[0]


@pytest.fixture
def server(pair: tuple[LinearService, TestServer]) -> TestServer:
    """What stands in front of it."""
    return pair[1]


@pytest.fixture
async def tracker(server: TestServer) -> AsyncIterator[Tracker]:
    """A tracker of its team with the default settings."""
    async with opened(server) as found:
        yield found
