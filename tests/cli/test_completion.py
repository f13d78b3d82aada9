"""What a shell is offered when somebody presses Tab."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_daemon import READY, STATE, FakeDaemon
from tests.cli.test_history import record
from tests.cli.test_status import HELD, KEPT, RUNNING, WAITING
from tests.cli.world import FIVE_MISTAKES, WORKFLOW, Ran
from tests.store.records import an_issue, begin

T = 1_700_000_000.0


@pytest.fixture
def tab(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Ask as bash does, for the last word given."""

    def ask(*words: str) -> Ran:
        monkeypatch.setenv("_SORTIE_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(("sortie", *words)))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return cli()

    return ask


def offered(ran: Ran) -> list[str]:
    assert (ran.code, ran.err) == (0, "")
    return ran.out.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(cli: Cli, shell: str) -> None:
    """The script asks this program."""
    ran = cli("--show-completion", shell)

    assert (ran.code, ran.err) == (0, "")
    assert f"_SORTIE_COMPLETE=complete_{shell}" in ran.out


def test_another_shell_is_a_usage_error(cli: Cli) -> None:
    """The shells that can be served are named."""
    ran = cli("--show-completion", "tcsh")

    assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert "bash" in ran.err


def test_commands_are_offered(tab: Cli) -> None:
    """What begins so is offered, and nothing else."""
    assert sorted(offered(tab("re"))) == ["refresh", "render", "rescue", "resume", "retry"]


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        (["run", "--log-level", "w"], ["warning"]),
        (["status", "--w"], ["--workflow", "--watch"]),
        (["service", ""], ["install", "uninstall"]),
        (["help", "opera"], ["operating"]),
        (["--show-completion", ""], ["bash", "zsh", "fish"]),
        (["run", "--port", ""], []),
        (["run", "'"], []),
    ],
)
def test_options_and_their_values_are_offered(
    tab: Cli, words: list[str], offers: list[str]
) -> None:
    """Where a value is one of few; files are left to the shell."""
    assert offered(tab(*words)) == offers


@pytest.mark.parametrize("command", ["explain", "stop", "retry", "render", "history --issue"])
def test_issues_are_offered(tab: Cli, here: Path, daemon: FakeDaemon, command: str) -> None:
    """Those that the daemon has in hand or in view, and those on record; each once."""
    daemon.show(
        STATE | {"running": [RUNNING], "waiting": [WAITING], "held": [HELD], "queued": [KEPT, 7]},
        READY,
    )
    record(here, (T, [begin("r-1", an_issue("DEMO-1"))]), (T, [begin("r-2", an_issue("OLD-1"))]))

    assert offered(tab(*command.split(), "")) == ["DEMO-1", "DEMO-3", "DEMO-4", "DEMO-7", "OLD-1"]
    assert offered(tab(*command.split(), "OLD")) == ["OLD-1"]


REMOTE = WORKFLOW.replace("---\ntracker", "---\nworker:\n  ssh_hosts: [build-1, build-2]\ntracker")


def test_hosts_are_offered(tab: Cli, here: Path, daemon: FakeDaemon) -> None:
    """Those of the settings, and those that the daemon has, which may be older ones."""
    (here / "WORKFLOW.md").write_text(REMOTE)
    host = {"host": "old-1", "up": False, "used": 0, "slots": 2}
    daemon.show(STATE | {"hosts": [host, 7, {"host": None}]})

    assert offered(tab("doctor", "--host", "")) == ["build-1", "build-2", "old-1"]
    assert offered(tab("doctor", "--host", "build")) == ["build-1", "build-2"]


def test_without_a_workflow_no_host_is_offered(tab: Cli) -> None:
    """And nothing is said."""
    assert offered(tab("doctor", "--host", "")) == []


def test_the_named_workflow_is_looked_at(tab: Cli, here: Path) -> None:
    """An option that stands before the issue says whose issues are meant."""
    (here / "team").mkdir()
    (here / "team" / "W.md").write_text(WORKFLOW)
    record(here / "team", (T, [begin("r-1", an_issue("TEAM-1"))]))

    assert offered(tab("explain", "-w", "team/W.md", "")) == ["TEAM-1"]
    assert offered(tab("explain", "")) == []


@pytest.mark.parametrize("broken", ["", FIVE_MISTAKES, "\x00"])
def test_what_is_wrong_offers_nothing_and_says_nothing(tab: Cli, here: Path, broken: str) -> None:
    """A shell's line is no place for complaints."""
    (here / "WORKFLOW.md").write_text(broken)
    (here / ".sortie.db").write_text("no database")

    assert offered(tab("explain", "")) == []
