"""The operator's pages name what the daemon has: events, fields, words, codes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import cast

import pytest

from sortie.cli.history import as_json
from sortie.config.sandbox import SandboxSettings
from sortie.daemon import shutdown, stop_deadline
from sortie.daemon.doctor.hosts import HostLook
from sortie.daemon.doctor.machine import machine_checks
from sortie.daemon.doctor.repository import RepositoryLook
from sortie.daemon.doctor.sandbox import sandbox_checks
from sortie.daemon.doctor.store import store_checks
from sortie.daemon.remote_transports import ssh_settings
from sortie.model import ErrorKind, HoldReason, RunStatus, Trigger
from sortie.resources import clock, watchdog
from sortie.scheduler.explanation import IssueStanding
from sortie.transports.local import LocalTransport
from sortie.transports.ssh.asyncio_thread import AsyncioThread
from tests.docs import reference
from tests.docs.pages import ROOT, page, section, table, word
from tests.store.first_schema import HISTORY
from tests.worker.rig import settings_of

PAGES = ("operating", "doctor", "history", "retries", "log-events", "state")
TEXT = "\n".join(page(f"{name}.md") for name in PAGES)
EVENT = re.compile(r"[a-z]+(?:_[a-z]+)*\.[a-z]+(?:_[a-z]+)*")


def sources_of_events() -> Iterator[Path]:
    for path in sorted((ROOT / "sortie").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "structlog.get_logger()" in text or path.parent.name in ("facts", "log"):
            yield path


def events_in(path: Path) -> Iterator[str]:
    """Yield the constants that look like names of events."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and EVENT.fullmatch(value):
            yield value


def test_every_log_event_is_listed() -> None:
    """The table of events holds every name that the code can log, and no other."""
    written = {word(row["event"]) for row in table(TEXT, "event")}

    assert written == {event for path in sources_of_events() for event in events_in(path)}


@pytest.mark.parametrize("name", reference.PAGES)
def test_tables_that_are_made_from_the_code_are_up_to_date(name: str) -> None:
    """``python -m tests.docs.reference`` has been run."""
    first, rows = reference.PAGES[name]

    assert reference.with_table(page(name), first, rows()) == page(name)


def test_every_field_of_history_is_listed() -> None:
    """The table of history's fields is that of what is printed."""
    written = [word(row["field"]) for row in table(section(TEXT, "History"), "field")]

    assert written == list(cast("dict[str, object]", as_json(HISTORY[0])))


def test_every_check_of_the_doctor_is_listed() -> None:
    """The table of checks names those of machine, agents and hosts, and no other of them."""
    settings = settings_of()
    machine = (check.name for check in machine_checks(settings, LocalTransport(), {}))
    no_thread = cast(AsyncioThread, None)  # nothing is asked
    nothing = cast(RepositoryLook, object())
    walled = settings.model_copy(update={"sandbox": SandboxSettings(kind="bubblewrap")})
    host = HostLook("h", walled, ssh_settings(settings, {}, {}), no_thread, nothing, {})
    hosts = (check.name for check in host.checks())
    written = [word(row["check"]) for row in table(TEXT, "check")]

    assert [
        name for name in written if not name.startswith(("tracker.", "repository.", "forge."))
    ] == [
        "workflow",
        "settings",
        *(f"machine.{name}" for name in machine),
        *(f"store.{check.name}" for check in store_checks(settings)),
        "agent.program",
        "agent.credential",
        "agent.reviewer",
        *(f"machine.{check.name}" for check in sandbox_checks(walled, {})),
        *(f"hosts.HOST.{name}" for name in hosts),
        "webhooks.KIND",
    ]


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("status", RunStatus),
        ("error kind", ErrorKind),
        ("trigger", Trigger),
        ("reason", HoldReason),
        ("standing", IssueStanding),
    ],
)
def test_every_word_is_listed(heading: str, kind: type[StrEnum]) -> None:
    """The tables of words hold every member, and no other."""
    written = [word(row[heading]) for row in table(TEXT, heading)]

    assert sorted(written) == sorted(kind)


def test_words_that_nothing_gives_are_marked() -> None:
    """A word that this version never gives is marked so, and no other is."""
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "sortie").rglob("*.py")
        if path.parent.name not in ("model", "metrics") and path.name != "rules.py"
        if "testing" not in path.parts  # it asks adapters for what they give
    )
    kinds = ((ErrorKind, "error kind"), (HoldReason, "reason"))
    marked = {
        (kind, word(row[heading]))
        for kind, heading in kinds
        for row in table(TEXT, heading)
        if "reserved: " in str(row)
    }
    at_once = {  # by a table
        HoldReason.AGENT_NOT_FOUND,
        HoldReason.INVALID_WORKSPACE_CWD,
        HoldReason.ADAPTER_SETTINGS,
        HoldReason.VERIFICATION_FAILED,
        HoldReason.NO_CHANGE,
    }

    unused = {
        (kind, member.value)
        for kind in (ErrorKind, HoldReason)
        for member in kind
        if f"{kind.__name__}.{member.name}" not in code and member not in at_once
    }

    assert marked == unused


def test_exit_codes_are_those_of_the_daemon() -> None:
    """Every exit code of the daemon is in the table of exit codes."""
    codes = {value for name, value in vars(shutdown).items() if name.startswith("EXIT_")}

    assert {int(row["code"]) for row in table(TEXT, "code")} == codes | {2, watchdog.EXIT_STUCK}


def test_the_bounds_of_the_watchdog_are_stated() -> None:
    """What it waits for before it ends the daemon, and what a pause is."""
    section_of = section(TEXT, "Pauses and standstills")

    assert f"{watchdog.STANDSTILL / 60:g} minutes" in section_of
    assert f"{watchdog.LAST_SECONDS:g} seconds" in section_of
    assert f"more than {clock.GAP_THRESHOLD:g} seconds late" in section_of


def test_the_limits_of_leaving_are_those_of_the_daemon() -> None:
    """The seconds after which hooks are cut and the daemon leaves are stated."""
    sentence = f"after {stop_deadline.POLITE:g} seconds hooks are cut and grace is over"
    late = stop_deadline.CUT + stop_deadline.LAST_SWEEP + stop_deadline.CLOSE_ALL
    end = f"{stop_deadline.CUT:g} seconds later no run is waited for any more"

    assert f"{sentence}, and {end}" in TEXT
    assert f"within {stop_deadline.TOTAL:g} seconds" in TEXT
    assert late < stop_deadline.TOTAL - stop_deadline.POLITE
