"""The unit that is shipped and the one that is installed, judged by systemd itself."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from sortie.cli.service.unit import Scope, Unit
from sortie.daemon import stop_deadline
from sortie.resources import watchdog
from tests.docs.pages import ROOT, page

MOST_EXPOSURE = 32
"""Tenths, as systemd-analyze counts."""

EXAMPLE = Unit(
    scope=Scope.SYSTEM,
    workflow="/srv/sortie/WORKFLOW.md",
    program=("/opt/sortie/bin/sortie",),
    user="sortie",
    search_path="/opt/sortie/bin:/usr/local/bin:/usr/bin:/bin",
    environment_file="/etc/sortie/sortie.env",
)

requires_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze, of Debian's systemd"
)


def analyzed(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Have a unit judged, whose program is one that is there."""
    path = folder / "sortie.service"
    path.write_text(text.replace("ExecStart=/opt/sortie/bin/sortie", "ExecStart=/bin/true"))
    return subprocess.run(
        ["systemd-analyze", *arguments, str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "XDG_RUNTIME_DIR": str(folder)},
    )


def test_the_shipped_unit_is_the_installed_one() -> None:
    """``deploy/sortie.service`` is what the command writes, below a comment."""
    shipped = (ROOT / "deploy/sortie.service").read_text(encoding="utf-8")

    assert re.sub(r"\A(#.*\n)+", "", shipped) == EXAMPLE.text()


@requires_systemd
@pytest.mark.parametrize("scope", Scope)
def test_systemd_finds_no_fault(scope: Scope, tmp_path: Path) -> None:
    """Neither with the system's unit nor with a user's one."""
    user = ["--user"] if scope is Scope.USER else []
    unit = replace(EXAMPLE, scope=scope)

    done = analyzed(tmp_path, unit.text(), *user, "verify", "--man=no")

    assert (done.returncode, done.stderr) == (0, "")


@requires_systemd
def test_systemd_sees_a_fault(tmp_path: Path) -> None:
    """A setting that it does not know would be told."""
    done = analyzed(tmp_path, f"{EXAMPLE.text()}\n[Service]\nType=nonsense\n", "verify")

    assert "nonsense" in done.stderr


@requires_systemd
def test_the_unit_is_hardened(tmp_path: Path) -> None:
    """Its exposure, as systemd reckons it, is at most 3.2."""
    limit = f"--threshold={MOST_EXPOSURE}"
    text = EXAMPLE.text()

    done = analyzed(tmp_path, text, "security", "--offline=true", limit)
    less = text.replace("PrivateMounts=yes\n", "").replace("PrivateDevices=yes\n", "")
    soft = analyzed(tmp_path, less, "security", "--offline=true", limit)

    assert done.returncode == 0, done.stdout
    assert soft.returncode != 0


@requires_systemd
def test_the_page_tells_the_exposure(tmp_path: Path) -> None:
    """What systemd reckons of the unit of a user that the page makes, and of one below /home."""
    text = page("deploy.md")
    told = re.search(r"of systemd ([\d and]+) reckons it, is (\d\.\d), and (\d\.\d) where", text)
    home = re.search(r"^useradd .*--home-dir (\S+) sortie$", text, re.MULTILINE)
    assert told is not None
    assert home is not None
    version = subprocess.run(
        ["systemd-analyze", "--version"], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    if version not in told[1].split(" and "):
        pytest.skip(f"the page tells what systemd {told[1]} reckons, and this is {version}")

    def exposure(home: str) -> str:
        found = f"/opt/sortie/bin:{home}/.local/bin:/usr/local/bin:/usr/bin:/bin"
        unit = replace(EXAMPLE, search_path=found).text()
        judged = analyzed(tmp_path, unit, "security", "--offline=true").stdout
        return judged.partition("level for sortie.service: ")[2].split()[0]

    assert (exposure(home[1]), exposure("/home/sortie")) == (told[2], told[3])


def test_the_times_of_the_unit_fit_the_daemon() -> None:
    """systemd waits longer for the end than the daemon takes, and for a sign than its watchdog."""
    text = EXAMPLE.text()
    stop = float(re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)[0])
    sign = 60 * float(re.findall(r"^WatchdogSec=(\d+)min$", text, re.MULTILINE)[0])

    longest = stop_deadline.TOTAL
    assert stop > longest
    assert sign > watchdog.STANDSTILL + watchdog.LAST_SECONDS
