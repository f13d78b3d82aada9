"""What the port promises is kept on a host over SSH, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sortie.testing.agent import CHECKS
from tests.contract.agent.kinds import FOLDERS, require_kept
from tests.transports.ssh.sshd import Keys, Sshd, requires_sshd, sshd_running

pytestmark = requires_sshd


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """Give a host that is this machine behind an sshd of its own."""
    place = tmp_path_factory.mktemp("remote")
    with sshd_running(place / "host", Keys.make(place / "client")) as host:
        yield host


NEAR = ("stop.", "process.", "resume.", "end.signal", "turn.success", "turn.long-prompt", "host.")
"""What a host makes a difference to."""

KINDS = ("kiro", "acp")
"""A process for each turn, and one that lives. The rest is tried over a link with --full only."""

EVERYTHING = [
    pytest.param(
        kind, check, marks=[] if kind in KINDS and check.startswith(NEAR) else pytest.mark.full
    )
    for kind in FOLDERS
    for check in CHECKS
]


@pytest.mark.parametrize(("kind", "check"), EVERYTHING)
def test_a_promise_is_kept(kind: str, check: str, host: Sshd, tmp_path: Path) -> None:
    """The same over a link."""
    require_kept(kind, check, tmp_path, host)
