"""The command line of the kit."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import threading
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from enum import StrEnum
from pathlib import Path

import trio
from msgspec.structs import asdict

from sortie.agents import ADAPTERS, AgentAdapter
from sortie.model import LOCAL, SortieError
from sortie.model.texts import NOT_ON_A_LINE, cut
from sortie.testing.agent.check import CHECKS
from sortie.testing.agent.place import AgentHost, open_host, this_machine
from sortie.testing.agent.run import Conformance, failed
from sortie.testing.agent.scenarios import SCENARIOS, Scenarios, plain_scenarios, read_scenarios
from sortie.testing.checks import CheckVerdict, Status
from sortie.transports.ssh.settings import SshSettings

_REASON = 500  # characters
_STATUS = max(len(status) for status in Status)


def heading() -> str:
    """Return the table's first row."""
    return f"{'result':<{_STATUS}}  {'check':<{_width()}}  seconds  promise"


def row(verdict: CheckVerdict) -> str:
    """Return a verdict as a row, with the reason below it where it did not pass."""
    line = f"{verdict.status:<{_STATUS}}  {verdict.check:<{_width()}}  {verdict.seconds:7.2f}"
    reason = f"\n{'':{_STATUS}}  {_on_a_line(verdict.reason)}" if verdict.reason else ""
    return f"{line}  {verdict.promise}{reason}"


def summary(verdicts: Sequence[CheckVerdict]) -> str:
    """Return how many checks came to what."""
    counts = {status: sum(v.status is status for v in verdicts) for status in Status}
    return ", ".join(f"{count} {status}" for status, count in counts.items())


def as_json(kind: str, host: str, verdicts: Sequence[CheckVerdict]) -> str:
    """Return the verdicts as one object, with the counts."""
    counts = {
        status.replace(" ", "_"): sum(v.status is status for v in verdicts) for status in Status
    }
    rows = [asdict(verdict) for verdict in verdicts]
    return json.dumps({"kind": kind, "host": host, **counts, "checks": rows}, indent=2)


def _width() -> int:
    return max(map(len, CHECKS))


def _on_a_line(text: str) -> str:
    return NOT_ON_A_LINE.sub(" ", cut(text, _REASON))


EXIT_FAILED, EXIT_USAGE, EXIT_BLOCKED = 1, 2, 3
_WIDTH = 28
_BLOCKED_AFTER = 60.0
"""Seconds beyond all others after which an adapter that blocks the whole process is given up."""


class ReportFormat(StrEnum):
    """How the verdicts are shown."""

    TABLE = "table"
    JSON = "json"


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m sortie.testing.agent",
        description="Try what every agent's adapter promises, with its program, and show what it"
        " kept. Exits with 0 where no check failed, 1 where one did, 2 where the checks could not"
        " begin, 3 where the adapter blocked the process.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--kind", metavar="KIND", help="The adapter, as agent.kind names it.")
    add("--command", metavar="COMMAND", help="Its program, as agent.command names it.")
    add(
        "--scenarios",
        type=Path,
        metavar="DIR",
        help="A scenarios.toml, or the directory that holds it: how the program is made to "
        "misbehave. Without it a real agent is asked in plain words, which its model "
        "answers and its provider charges for, and what words cannot do is not tried.",
    )
    add("--settings", metavar="JSON", help="The adapter's block, over the one of the scenarios.")
    add(
        "--only",
        action="append",
        metavar="CHECK",
        help="A check, or a group such as stop; may be repeated.",
    )
    add("--host", metavar="[USER@]HOST[:PORT]", help="Run the agent there, over SSH.")
    add("--ssh-config", metavar="FILE")
    add("--ssh-known-hosts", metavar="FILE")
    add("--ssh-identity-file", action="append", metavar="FILE")
    add("--list", action="store_true", help="List the checks and the scenarios.")
    add(
        "--patience",
        type=_seconds,
        default=120.0,
        metavar="SECONDS",
        help="How long a check may take. [default: 120]",
    )
    add(
        "--format",
        choices=[each.value for each in ReportFormat],
        default=ReportFormat.TABLE.value,
        help="How it is shown. [default: table]",
    )
    return parser


def _seconds(text: str) -> float:
    seconds = float(text)
    if not seconds >= 1.0:
        raise ArgumentTypeError(f"{text} is less than 1")
    return seconds


def _show_list() -> None:
    print("Checks:")
    for check in CHECKS.values():
        print(f"  {check.name:{_WIDTH}}  {check.promise}")
    print("\nScenarios, which a scenarios.toml describes:")
    for name, deed in SCENARIOS.items():
        print(f"  {name:{_WIDTH}}  {deed}")


def run_checks(words: Sequence[str]) -> int:
    """Make the checks that a command line asks for, and return the exit code."""
    parser = _parser()
    given = parser.parse_args(words)
    if given.list:
        _show_list()
        return 0
    if given.kind is None:
        parser.error("the following arguments are required: --kind")
    ssh = SshSettings(
        config=given.ssh_config,
        known_hosts=given.ssh_known_hosts,
        identity_files=tuple(given.ssh_identity_file or ()),
        agent=os.environ.get("SSH_AUTH_SOCK"),
        search_path=os.environ.get("PATH", os.defpath),
    )
    try:
        names = CHECKS.chosen(given.only or CHECKS)
        with tempfile.TemporaryDirectory(prefix="sortie-scenarios-") as scratch:
            read = (
                read_scenarios(given.scenarios, Path(scratch))
                if given.scenarios
                else plain_scenarios()
            )
            adapter = _adapter(given.kind)
            conformance = Conformance(
                adapter=adapter,
                command=given.command,
                scenarios=_with_settings(read, given.settings),
                env=_environment(adapter, remote=given.host is not None),
                patience=given.patience,
            )
            conformance.settings()
            run = _CheckRun(conformance, ReportFormat(given.format))
            trio.run(run.everywhere, names, given.host, ssh)
    except SortieError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    return EXIT_FAILED if failed(run.verdicts) else 0


class _CheckRun:
    """Makes the checks and shows what they come to, each as it is made."""

    def __init__(self, conformance: Conformance, output: ReportFormat) -> None:
        self._conformance = conformance
        self._output = output
        self.verdicts: list[CheckVerdict] = []

    async def everywhere(self, names: Sequence[str], host: str | None, ssh: SshSettings) -> None:
        """Make the checks on this machine, or on a host."""
        async with _place(host, ssh) as place:
            self._show_row(heading())
            for name in names:
                with _given_up(name, after=_BLOCKED_AFTER + 4 * self._conformance.patience):
                    verdict = await self._conformance.verdict(CHECKS[name], place)
                self.verdicts.append(verdict)
                self._show_row(row(verdict))
        self._show_row(summary(self.verdicts))
        if self._output is ReportFormat.JSON:
            kind = self._conformance.adapter.kind
            print(as_json(kind, host or LOCAL, self.verdicts))

    def _show_row(self, text: str) -> None:
        if self._output is ReportFormat.TABLE:
            print(text, flush=True)


@asynccontextmanager
async def _place(host: str | None, ssh: SshSettings) -> AsyncIterator[AgentHost]:
    if host is None:
        yield this_machine()
        return
    async with open_host(host, ssh) as place:
        yield place


@contextmanager
def _given_up(name: str, *, after: float) -> Iterator[None]:
    """End this process where an adapter blocks it: nothing in it runs any more that could."""

    def give_up() -> None:
        sys.stderr.write(f"{name}: the adapter blocks the process; given up after {after:g} s\n")
        sys.stderr.flush()
        os._exit(EXIT_BLOCKED)

    timer = threading.Timer(after, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _adapter(kind: str) -> AgentAdapter:
    try:
        return ADAPTERS.load(kind)
    except LookupError as error:
        raise SortieError(f"--kind {kind}: {error.args[0]}") from error


def _with_settings(scenarios: Scenarios, settings: str | None) -> Scenarios:
    if settings is None:
        return scenarios
    try:
        block = json.loads(settings)
    except ValueError as error:
        raise SortieError(f"--settings: {error}") from error
    if not isinstance(block, dict):
        raise SortieError("--settings: a JSON object is expected, as the adapter's block is one")
    return scenarios.model_copy(update={"settings": {**scenarios.settings, **block}})


def _environment(adapter: AgentAdapter, *, remote: bool) -> dict[str, str]:
    """Return what an agent has of our environment: all of it here, on a host what it is handed."""
    if not remote:
        return dict(os.environ)
    return {name: os.environ[name] for name in adapter.env_names if name in os.environ}


def main() -> None:
    """Obey the command line."""
    sys.exit(run_checks(sys.argv[1:]))
