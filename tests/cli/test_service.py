"""``sortie service``: what is written, what systemd is asked, and what is left alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sortie.cli.service import environment_file
from sortie.cli.service.unit import Scope, Unit
from sortie.model import SortieError
from tests.cli.conftest import Cli
from tests.cli.programs_of_systemd import FakeSystemd
from tests.cli.world import WORKFLOW

SIMULATED = WORKFLOW.replace("kiro:\n", "agent:\n  command: sortie-kiro-sim\nkiro:\n")
WITH_TOKEN = SIMULATED.replace(
    "  kind: file\n", "  kind: linear\n  project: ENG\n  api_key: $TRACKER_TOKEN\n"
).replace("file:\n  path: issues\n", "")
UNIT = ".config/systemd/user/sortie.service"
SECRETS = ".config/sortie/sortie.env"


@pytest.fixture
def systemd(tmp_path: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> FakeSystemd:
    """A user's systemd that runs, and a workflow whose agent needs a key, which is set."""
    fake = FakeSystemd(tmp_path)
    monkeypatch.setenv("PATH", fake.search_path)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("KIRO_API_KEY", 'k3y-"$1`\\')
    (here / "WORKFLOW.md").write_text(SIMULATED)
    return fake


def test_a_service_is_installed_and_started(
    cli: Cli, systemd: FakeSystemd, tmp_path: Path, here: Path
) -> None:
    """The unit and the file of secrets are made, and systemd starts the unit; each step is told."""
    ran = cli("service", "install", "--user")

    assert (ran.code, ran.err) == (0, "")
    unit, secrets = (tmp_path / UNIT).read_text(), tmp_path / SECRETS
    assert f"run {here}/WORKFLOW.md\n" in unit
    assert f"EnvironmentFile=-{secrets}\n" in unit
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert environment_file.values_in(secrets) == {"KIRO_API_KEY": os.environ["KIRO_API_KEY"]}
    asked = ["daemon-reload", "enable sortie.service", "restart sortie.service"]
    assert systemd.asked() == [f"--user {each}" for each in asked]
    assert "k3y" not in ran.out + unit
    assert ran.out.splitlines()[:3] == [
        f"wrote {tmp_path / UNIT}",
        f"wrote {secrets}, mode 0600, with KIRO_API_KEY from here",
        "enabled and started sortie.service, which starts with the machine",
    ]
    assert "left to do" not in ran.out


def test_nothing_is_left_of_a_service_that_is_uninstalled(
    cli: Cli, systemd: FakeSystemd, tmp_path: Path
) -> None:
    """What was made is removed, and systemd stops the unit before."""
    cli("service", "install", "--user")
    before = len(systemd.asked())

    ran = cli("service", "uninstall", "--user")

    assert (ran.code, ran.err) == (0, "")
    assert systemd.asked()[before:] == [
        "--user disable --now sortie.service",
        "--user daemon-reload",
        "--user reset-failed sortie.service",
    ]
    assert not [path for path in (tmp_path / ".config").rglob("*") if path.is_file()]
    assert cli("service", "uninstall", "--user").code == 1


def test_a_dry_run_prints_the_unit_alone(cli: Cli, systemd: FakeSystemd, tmp_path: Path) -> None:
    """It writes nothing and asks systemd for nothing but its opinion."""
    ran = cli("service", "install", "--user", "--dry-run")

    assert ran.code == 0
    assert "\n[Service]\nType=notify\n" in ran.out
    assert not (tmp_path / ".config").exists()
    assert systemd.asked() == []


def test_a_service_that_lacks_something_is_not_started(
    cli: Cli, systemd: FakeSystemd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A missing key, a missing agent, a setting of this shell and a login that ends are told."""
    monkeypatch.delenv("KIRO_API_KEY")
    monkeypatch.setenv("SORTIE_POLLING_INTERVAL_MS", "1000")
    (tmp_path / "here/WORKFLOW.md").write_text(
        SIMULATED.replace("sortie-kiro-sim", "no-such-agent")
    )
    systemd.answer("loginctl*", "echo Linger=no")

    ran = cli("service", "install", "--user")

    assert ran.code == 0
    assert systemd.asked() == ["--user daemon-reload", "--user enable sortie.service"]
    left = [line for line in ran.out.splitlines() if line.startswith("left to do: ")]
    assert len(left) == 5
    assert "'no-such-agent' was not found" in left[0]
    assert "give KIRO_API_KEY a value" in left[1]
    assert "SORTIE_POLLING_INTERVAL_MS, set in this shell" in left[2]
    assert left[3] == "left to do: start it then: systemctl --user start sortie.service"
    assert "'sudo loginctl enable-linger " in left[4]
    assert "enabled sortie.service, which starts at your login\n" in ran.out


def test_secrets_of_the_file_count_as_set(
    cli: Cli, systemd: FakeSystemd, tmp_path: Path, here: Path
) -> None:
    """A workflow file is checked with the variables that the service will have."""
    (here / "WORKFLOW.md").write_text(WITH_TOKEN)
    refused = cli("service", "install", "--user")
    secrets = tmp_path / SECRETS
    secrets.parent.mkdir(parents=True)
    secrets.write_text("TRACKER_TOKEN='t0ken'\nKIRO_API_KEY=key\n")
    secrets.chmod(0o600)

    ran = cli("service", "install", "--user")

    assert refused.code == 1
    assert "TRACKER_TOKEN" in refused.err
    assert f"the service gets keys and tokens from {secrets}" in refused.err
    assert (ran.code, ran.err) == (0, "")
    assert "left to do" not in ran.out
    assert "t0ken" not in ran.out + (tmp_path / UNIT).read_text()
    assert cli("service", "uninstall", "--user").out.splitlines()[-1] == (
        f"left to do: {secrets} was changed and is left to you"
    )
    assert secrets.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604])
def test_secrets_that_others_can_read_are_refused(
    cli: Cli, systemd: FakeSystemd, tmp_path: Path, mode: int
) -> None:
    """Nothing is installed over them, and the remedy is told."""
    secrets = tmp_path / SECRETS
    secrets.parent.mkdir(parents=True)
    secrets.touch()
    secrets.chmod(mode)

    ran = cli("service", "install", "--user")

    assert ran.code == 1
    assert f"chmod 600 {secrets}" in ran.err
    assert not (tmp_path / UNIT).exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: "[Service]\nExecStart=/bin/true\n", "was not written by this command"),
        (lambda text: text.replace("RestartSec=20", "RestartSec=2"), "was changed since"),
    ],
    ids=["foreign", "changed"],
)
def test_a_unit_that_is_not_ours_is_left_alone(
    cli: Cli, systemd: FakeSystemd, tmp_path: Path, change: object, words: str
) -> None:
    """Neither install nor uninstall touches it; under another name there is no conflict."""
    cli("service", "install", "--user")
    unit = tmp_path / UNIT
    assert callable(change)
    unit.write_text(change(unit.read_text()))
    content, asked = unit.read_text(), systemd.asked()

    (tmp_path / "here/WORKFLOW.md").write_text(SIMULATED.replace("Do {{", "Please do {{"))
    again, away = cli("service", "install", "--user"), cli("service", "uninstall", "--user")

    assert (again.code, away.code) == (1, 1)
    assert words in again.err
    assert words in away.err
    assert unit.read_text() == content
    assert systemd.asked() == asked
    assert cli("service", "install", "--user", "--name", "second").code == 0
    assert (unit.parent / "second.service").exists()


def test_an_installed_service_is_brought_up_to_date(
    cli: Cli, systemd: FakeSystemd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Installing again writes what has changed, and the secrets stay."""
    cli("service", "install", "--user")
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{tmp_path}/other")

    ran = cli("service", "install", "--user")

    assert ran.out.splitlines()[0] == f"wrote {tmp_path / UNIT}"
    assert f":{tmp_path}/other" in (tmp_path / UNIT).read_text()
    assert len([line for line in ran.out.splitlines() if line.startswith("wrote")]) == 1


def test_what_systemd_refuses_is_told(cli: Cli, systemd: FakeSystemd, tmp_path: Path) -> None:
    """A fault that it finds keeps the unit from being written, a failed start is an error."""
    systemd.answer("*verify*", 'echo "sortie.service:9: Unknown key name" >&2; exit 1')
    faulty = cli("service", "install", "--user")
    written = (tmp_path / UNIT).exists()
    systemd.answer("*verify*", "exit 0")
    systemd.answer("*restart*", 'echo "Job for sortie.service failed." >&2; exit 1')
    failed = cli("service", "install", "--user")

    assert (faulty.code, written) == (1, False)
    assert "sortie.service:9: Unknown key name" in faulty.err
    assert failed.code == 1
    assert "'systemctl --user restart sortie.service' failed: Job for" in failed.err


def test_without_a_running_systemd_the_files_are_written(
    cli: Cli, systemd: FakeSystemd, tmp_path: Path
) -> None:
    """What it would have been asked is left to do."""
    systemd.answer("systemctl*is-system-running", "echo offline; exit 1")

    ran = cli("service", "install", "--user")

    assert ran.code == 0
    assert (tmp_path / UNIT).exists()
    assert systemd.asked() == []
    assert "systemctl --user enable --now sortie.service" in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("install", "--user", "--system"),
        ("install", "--user", "--run-as", "root"),
        ("install", "--name", "../evil"),
        ("install", "--name", ""),
        ("reinstall",),
    ],
)
def test_wrong_usage_is_refused(cli: Cli, systemd: FakeSystemd, arguments: tuple[str, ...]) -> None:
    """Contradictions and names that are none are told in one line."""
    ran = cli("service", *arguments)

    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1


def test_paths_are_escaped() -> None:
    """A path with a space, quotes, a percent or a dollar sign means itself."""
    unit = Unit(
        scope=Scope.SYSTEM,
        workflow='/srv/my $team "50%"/WORKFLOW.md',
        program=("/opt/my tools/sortie",),
        user="sortie",
        search_path="/a b:/c%",
        environment_file="/etc/sortie/50%.env",
    )

    text = unit.text()

    assert 'ExecStart="/opt/my tools/sortie" run "/srv/my $$team \\"50%%\\"/WORKFLOW.md"\n' in text
    assert 'WorkingDirectory=/srv/my $team "50%%"\n' in text
    assert 'Environment="PATH=/a b:/c%%"\n' in text
    assert "EnvironmentFile=-/etc/sortie/50%%.env\n" in text


def test_a_path_that_no_unit_can_hold_is_refused() -> None:
    """A line break would make settings of what stands behind it."""
    unit = Unit(
        scope=Scope.USER,
        workflow="/srv/a\nUser=root/WORKFLOW.md",
        program=("/bin/sortie",),
        user="me",
        search_path="/bin",
        environment_file="/e",
    )

    with pytest.raises(SortieError, match="cannot stand in a unit"):
        unit.text()


@pytest.mark.parametrize(
    ("workflow", "setting"),
    [("/srv/s/WORKFLOW.md", "ProtectHome=yes"), ("/home/me/WORKFLOW.md", "ProtectHome=no")],
)
def test_homes_are_hidden_where_they_are_not_needed(workflow: str, setting: str) -> None:
    """A unit of the system sees homes only where something that it needs stands in one."""
    unit = Unit(
        scope=Scope.SYSTEM,
        workflow=workflow,
        program=("/opt/sortie/bin/sortie",),
        user="sortie",
        search_path="/usr/bin",
        environment_file="/etc/sortie/sortie.env",
    )

    assert f"\n{setting}\n" in unit.text()
