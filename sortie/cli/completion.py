"""Completion in the shell: its script, and the names of issues and hosts.

Rule 1: a completion says nothing of its own and takes ``PATIENCE`` seconds at most, whatever is
wrong: then there is nothing to offer.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stderr
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

from sortie.cli.arguments import Source
from sortie.cli.commands import COMPLETE_VARIABLE
from sortie.cli.output import emit, one_line
from sortie.cli.parameters import WrongUsage
from sortie.model import SortieError

if TYPE_CHECKING:
    from sortie.cli.discovery import DaemonPlace

PATIENCE = 1.0
"""Seconds that somebody who pressed Tab waits for a daemon's answer."""

_RUNS = 200  # of history, whose issues are offered too
_KINDS = ("running", "waiting", "held", "queued", "blocked")
_PROGRAM = "sortie"


class ShellName(StrEnum):
    """The shells that can be served."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def show_completion(shell: ShellName) -> None:
    """Print the script by which a shell asks this program for completions."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(
        prog_name=_PROGRAM, complete_var=COMPLETE_VARIABLE, shell=shell.value
    )
    emit(f"{script}\n")


def serve_shells() -> None:
    """Let typer answer a shell that asks for completions, if this process is asked by one."""
    if COMPLETE_VARIABLE in os.environ:
        from typer.completion import get_completion_inspect_parameters

        get_completion_inspect_parameters()  # registers its shells; else only its options do


def complete_issue(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return names of issues that begin so, each with what is done about it."""
    source = _source(context)
    found: dict[str, str] = {}
    with redirect_stderr(io.StringIO()):
        for names in (_with_daemon, _on_record):
            try:
                for name, standing in names(_place(source)):
                    found.setdefault(name, standing)
            except (SortieError, WrongUsage):
                continue
    return [(name, found[name]) for name in sorted(found) if name.startswith(incomplete)]


def complete_host(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Return the names of SSH hosts that begin so, each with how it is where a daemon tells."""
    source = _source(context)
    found: dict[str, str] = {}
    with redirect_stderr(io.StringIO()):
        for names in (_hosts_with_daemon, _hosts_of_settings):
            try:
                for name, standing in names(source):
                    found.setdefault(name, standing)
            except (SortieError, WrongUsage):
                continue
    return [(name, found[name]) for name in sorted(found) if name.startswith(incomplete)]


def _source(context: typer.Context) -> Source:
    given = context.params
    named = given.get("argument") or given.get("option")
    return Source(argument=named, env_file=given.get("env_file"))


def _hosts_with_daemon(source: Source) -> Iterator[tuple[str, str]]:
    from sortie.cli.client import ask

    place = _place(source)
    state = ask(place, place.daemon(), "GET", "/api/v1/state", PATIENCE).document
    views: Any = state.get("hosts")
    for view in views if isinstance(views, list) else ():
        if isinstance(view, dict) and isinstance(name := view.get("host"), str):
            yield one_line(name), "up" if view.get("up") else "in trouble"


def _hosts_of_settings(source: Source) -> Iterator[tuple[str, str]]:
    from sortie.daemon.workflow_file import load_workflow

    for host in load_workflow(source.options()).settings.worker.ssh_hosts:
        yield one_line(host), "of worker.ssh_hosts"


def _place(source: Source) -> DaemonPlace:
    from sortie.cli.discovery import locate

    return locate(source)


def _with_daemon(place: DaemonPlace) -> Iterator[tuple[str, str]]:
    from sortie.cli.client import ask

    state = ask(place, place.daemon(), "GET", "/api/v1/state", PATIENCE).document
    for kind in _KINDS:
        views: Any = state.get(kind)
        for view in views if isinstance(views, list) else ():
            if isinstance(view, dict) and isinstance(name := view.get("issue_identifier"), str):
                yield one_line(name), kind


def _on_record(place: DaemonPlace) -> Iterator[tuple[str, str]]:
    from sortie.store.readonly import read_history

    if os.path.lexists(place.db_path):
        for row in read_history(place.db_path, limit=_RUNS):
            yield one_line(row.issue), f"last run {row.status}"


COMPLETIONS = {"issue": complete_issue, "host": complete_host}
"""How each kind of name is completed that a parameter may have."""
