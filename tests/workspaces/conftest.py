"""A real transport for the tests of workspaces."""

from __future__ import annotations

import os

import pytest

from sortie.transports.local import LocalTransport, become_subreaper


@pytest.fixture
def transport() -> LocalTransport:
    become_subreaper()
    return LocalTransport(os.environ["PATH"])
