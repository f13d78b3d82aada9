"""``sortie status``: what the daemon does now."""

from __future__ import annotations

import json
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Struct

from sortie.cli.arguments import OutputFormat, Source, Sources
from sortie.cli.format import utc
from sortie.cli.output import Format, columns, complain, emit, emit_json, one_line
from sortie.cli.parameters import option
from sortie.model import SortieError

if TYPE_CHECKING:
    from rich.live import Live

    from sortie.cli.discovery import DaemonPlace
    from sortie.daemon.endpoint_file import DaemonEndpoint

INTERVAL = 2.0
"""Seconds between two looks with ``--watch``."""

Pause = Callable[[float], None]


def status(
    source: Sources,
    watch: Annotated[
        bool,
        option("--watch", help="Look again every 2 seconds until Ctrl-C."),
    ] = False,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Show what the daemon does: its health, what runs, waits and is held, and what is wrong.

    With --watch a daemon that is gone is said to be, and looked for again. As JSON it is the
    document of /api/v1/state with 'ready' and 'reasons', with --watch one of them a line. Of
    several workflows each is shown, in JSON by its name.
    """
    from sortie.cli.discovery import locate

    workflows = source.each()
    if "" not in workflows:
        if watch:
            with pausing() as pause:
                follow_several(workflows, output, pause)
            return
        document, texts = _look_at(workflows)
        if output is Format.JSON:
            emit_json(document)
        else:
            emit("\n".join(texts))
        return
    place = locate(workflows[""])
    if watch:
        with pausing() as pause:
            follow(place, output, pause)
    elif output is Format.JSON:
        emit_json(_read_status(place).document)
    else:
        emit(_screen(_read_status(place)))


def _look_at(workflows: Mapping[str, Source]) -> tuple[dict[str, Any], list[str]]:
    """Return the daemon of each workflow as a document and as texts, or why it cannot be shown."""
    from sortie.cli.discovery import locate

    documents: dict[str, Any] = {}
    texts: list[str] = []
    for name, source in workflows.items():
        try:
            found = _read_status(locate(source))
            documents[name] = found.document
            text = _screen(found)
        except SortieError as error:
            documents[name] = {"error": str(error)}
            text = f"{one_line(str(error))}\n"
        texts.append(f"workflow {name}\n{text}")
    return {"workflows": documents}, texts


def follow_several(workflows: Mapping[str, Source], output: Format, pause: Pause) -> None:
    """Show the daemons of several workflows again and again, also where one cannot be shown."""
    with ExitStack() as screens:
        shown = _StatusOutput(output, screens)
        while True:
            shown.show(*_look_at(workflows))
            pause(INTERVAL)


def follow(place: DaemonPlace, output: Format, pause: Pause) -> None:
    """Show a place's daemon again and again, also one that is away for a while."""
    from sortie.cli.discovery import NoDaemon

    with ExitStack() as screens:
        shown = _StatusOutput(output, screens)
        while True:
            try:
                found = _read_status(place)
                shown.show(found.document, [_screen(found)])
            except SortieError as error:
                # One that was seen may be restarted this moment: its token is not the new one's.
                if not isinstance(error, NoDaemon) and not shown.has_shown:
                    raise
                shown.miss(str(error))
            pause(INTERVAL)


@contextmanager
def pausing() -> Iterator[Pause]:
    """Give a way to wait some seconds that ends at once when the terminal's size changes."""
    reader, writer = socket.socketpair()
    with reader, writer:
        writer.setblocking(False)
        heeded = signal.signal(signal.SIGWINCH, lambda *_: None)  # else nothing is woken by it
        woken = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)

        def pause(seconds: float) -> None:
            if select.select([reader], [], [], seconds)[0]:
                reader.recv(4096)

        try:
            yield pause
        finally:
            signal.set_wakeup_fd(woken)
            signal.signal(signal.SIGWINCH, heeded)


class _Status(Struct, frozen=True, kw_only=True):
    """A daemon, and the document that programs get of it."""

    endpoint: DaemonEndpoint
    document: dict[str, Any]


class _StatusOutput:
    """What stands on stdout: a screen that is drawn over, or one text after another."""

    def __init__(self, output: Format, screens: ExitStack) -> None:
        self._output = output
        self._live = None if output is Format.JSON else _live(screens)
        self._missed = ""
        self._count = 0

    @property
    def has_shown(self) -> bool:
        """Whether a daemon was seen."""
        return self._count > 0

    def show(self, document: dict[str, Any], texts: Sequence[str]) -> None:
        """Show a look at a daemon, or at several."""
        self._missed = ""
        if self._output is Format.JSON:
            emit(json.dumps(document, separators=(",", ":")) + "\n")
        elif self._live is not None:
            _draw(self._live, texts)
        else:
            emit("\n" * bool(self._count) + "\n".join(texts))
        self._count += 1

    def miss(self, why: str) -> None:
        """Say that there is no daemon, once where what was said stays."""
        if self._live is not None:
            _draw(self._live, [f"{utc(datetime.now(UTC))} {one_line(why)}\nlooking on\n"])
        elif why != self._missed:
            complain(f"{why}; looking on")
        self._missed = why


def _live(screens: ExitStack) -> Live | None:
    """Return a screen of the terminal's own, so that nothing of it is left behind or wrapped anew
    when the terminal's size changes; None where stdout is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    from rich.console import Console
    from rich.live import Live

    return screens.enter_context(
        Live(console=Console(file=sys.stdout, highlight=False), screen=True, auto_refresh=False)
    )


def _draw(live: Live, texts: Sequence[str]) -> None:
    from rich.text import Text

    lines = fitting([text.splitlines() for text in texts], live.console.size.height)
    live.update(Text.from_ansi("\n".join(lines)), refresh=True)


def fitting(texts: Sequence[Sequence[str]], height: int) -> list[str]:
    """Return texts with a blank line between two, cut so that all of them have room: the long ones
    share what the short ones leave."""
    left = max(len(texts), height - (len(texts) - 1))
    rooms: dict[int, int] = {}
    for number in sorted(range(len(texts)), key=lambda number: len(texts[number])):
        rooms[number] = min(len(texts[number]), left // (len(texts) - len(rooms)))
        left -= rooms[number]
    lines: list[str] = []
    for number, text in enumerate(texts):
        room = rooms[number]
        if number:
            lines.append("")
        if len(text) > room:
            room = max(1, room - 1)
            lines += [*text[:room], f"... and {len(text) - room} lines more"]
        else:
            lines += text
    return lines


def _read_status(place: DaemonPlace) -> _Status:
    from sortie.cli.client import accepted, ask

    endpoint = place.daemon()
    state = accepted(ask(place, endpoint, "GET", "/api/v1/state"), place, "show the status")
    probe = ask(place, endpoint, "GET", "/readyz")
    reasons = probe.document.get("reasons")
    health = {
        "ready": probe.status == 200,
        "reasons": reasons if isinstance(reasons, list) else [],
    }
    return _Status(endpoint=endpoint, document=state.document | health)


def _screen(status_read: _Status) -> str:
    from sortie.cli.client import understood
    from sortie.cli.status_facts import DaemonStatus
    from sortie.cli.status_view import screen
    from sortie.web.state import StateView

    view = DaemonStatus(
        endpoint=status_read.endpoint,
        state=understood(StateView, status_read.document),
        ready=status_read.document["ready"],
        reasons=tuple(map(str, status_read.document["reasons"])),
    )
    return screen(view, columns())
