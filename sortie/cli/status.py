"""``sortie status``: what the daemon does now."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sortie.cli.arguments import (
    DEFAULT_WORKFLOW,
    EnvFile,
    OutputFormat,
    Source,
    WorkflowOption,
)
from sortie.cli.output import UNLIMITED, Format, complain, emit, emit_json, one_line

if TYPE_CHECKING:
    from sortie.cli.finding import Place
    from sortie.daemon.presence import Presence

INTERVAL = 2.0
"""Seconds between two looks with ``--watch``."""

_CLEAR, _HOME, _LINE_END, _BELOW = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"

Pause = Callable[[float], None]


def status(
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Look again every 2 seconds until Ctrl-C."),
    ] = False,
    workflow: WorkflowOption = DEFAULT_WORKFLOW,
    env_file: EnvFile = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show what the daemon does: its health, what runs, waits and is held, and what is wrong.

    With --watch a daemon that is gone is said to be, and looked for again. As JSON it is the
    document of /api/v1/state with 'ready' and 'reasons', with --watch one of them a line.
    """
    from sortie.cli.finding import locate

    place = locate(Source(workflow=workflow, env_file=env_file))
    if watch:
        follow(place, output, time.sleep)
    elif output is Format.JSON:
        emit_json(_see(place).document)
    else:
        emit(_screen(_see(place)))


def follow(place: Place, output: Format, pause: Pause) -> None:
    """Show a place's daemon again and again, also one that is away for a while."""
    from sortie.cli.finding import NoDaemon

    shown = _Shown(output)
    while True:
        try:
            shown.show(_see(place))
        except NoDaemon as error:
            shown.miss(str(error))
        pause(INTERVAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A daemon, and the document that programs get of it."""

    presence: Presence
    document: dict[str, Any]


class _Shown:
    """What stands on stdout: a screen that is drawn over, or one text after another."""

    def __init__(self, output: Format) -> None:
        self._output = output
        self._drawing = output is Format.TEXT and sys.stdout is not None and sys.stdout.isatty()
        self._missed = ""
        self._count = 0

    def show(self, seen: _Seen) -> None:
        """Show a look at a daemon."""
        self._missed = ""
        if self._output is Format.JSON:
            emit(json.dumps(seen.document, separators=(",", ":")) + "\n")
        elif self._drawing:
            self._draw(_screen(seen))
        else:
            emit(("\n" if self._count else "") + _screen(seen))
        self._count += 1

    def miss(self, why: str) -> None:
        """Say that there is no daemon, once where what was said stays."""
        if self._drawing:
            self._draw(f"{time.strftime('%H:%M:%S')} {one_line(why)}\nlooking on\n")
            self._count += 1
        elif why != self._missed:
            complain(f"{why}; looking on")
        self._missed = why

    def _draw(self, text: str) -> None:
        size = shutil.get_terminal_size()
        lines = text.splitlines()
        if len(lines) >= size.lines:
            room = max(1, size.lines - 2)
            lines = [*lines[:room], f"... and {len(lines) - room} lines more"]
        drawn = "".join(f"{line}{_LINE_END}\n" for line in lines)
        emit(f"{'' if self._count else _CLEAR}{_HOME}{drawn}{_BELOW}")


def _see(place: Place) -> _Seen:
    from sortie.cli.asking import accepted, ask

    presence = place.daemon()
    state = accepted(ask(place, presence, "GET", "/api/v1/state"), place, "show the status")
    probe = ask(place, presence, "GET", "/readyz")
    reasons = probe.document.get("reasons")
    health = {
        "ready": probe.status == 200,
        "reasons": reasons if isinstance(reasons, list) else [],
    }
    return _Seen(presence=presence, document=state.document | health)


def _screen(seen: _Seen) -> str:
    from sortie.cli.asking import understood
    from sortie.cli.screen import Look, screen
    from sortie.web import StateView

    look = Look(
        presence=seen.presence,
        state=understood(StateView, seen.document),
        ready=seen.document["ready"],
        reasons=tuple(map(str, seen.document["reasons"])),
    )
    terminal = sys.stdout is not None and sys.stdout.isatty()
    return screen(look, None if terminal else UNLIMITED)
