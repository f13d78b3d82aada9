"""``sortie drain``: have the daemon of this machine hand its workflows over to other daemons."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.output import Format, emit_line
from sortie.cli.parameters import WrongUsage, option
from sortie.model import SortieError
from sortie.model.numbers import counted

if TYPE_CHECKING:
    from sortie.cli.discovery import DaemonPlace
    from sortie.web.drain import DrainView

_now, _sleep = time.monotonic, time.sleep
_LOOK = 0.5  # seconds
_LONGEST = 7 * 24 * 3600


def drain(
    source: Source,
    cancel: Annotated[
        bool, option("--cancel", help="Let the daemon lead workflows again.")
    ] = False,
    wait: Annotated[
        int | None,
        option(
            "--wait",
            metavar="SECONDS",
            help="Return once it leads none; fail where that takes longer.",
            least=1,
            most=_LONGEST,
        ),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> None:
    """Have this machine's daemon hand its workflows over, for the machine to be maintained.

    It starts no run any more. Each of its workflows goes to another daemon of the database once its
    runs have ended, and then it stands by until it is ended, or 'sortie drain --cancel'.
    """
    from sortie.cli.discovery import locate

    if cancel and wait is not None:
        raise WrongUsage("goes without --cancel", parameter="--wait")
    seen: set[str] = set()
    for name, one in source.each().items():
        place = locate(one)
        found = _command(place, cancel=cancel)
        if found.daemon in seen:
            continue  # it has several of the workflows
        seen.add(found.daemon)
        if wait is not None:
            found = _drained(place, found, wait)
        if output is Format.JSON:
            from sortie.web.state import to_json

            emit_line(to_json(found).decode())
        else:
            emit_line(f"{name}: " * bool(name) + _sentence(found))


def _command(place: DaemonPlace, *, cancel: bool) -> DrainView:
    from sortie.cli.client import command, understood
    from sortie.web.drain import DrainView

    attempt = "end the drain" if cancel else "drain the daemon"
    path = "/api/v1/drain/cancel" if cancel else "/api/v1/drain"
    return understood(DrainView, command(place, attempt, path).document)


def _drained(place: DaemonPlace, found: DrainView, wait: int) -> DrainView:
    """Return how the daemon stands once it is drained. Raises SortieError where it is not in time.

    A process of one workflow begins anew when it has handed that over: it is away for a moment.
    """
    from sortie.cli.client import accepted, ask, understood
    from sortie.cli.discovery import NoDaemon
    from sortie.web.drain import DrainView

    deadline = _now() + wait
    while found.status != "drained":
        if _now() > deadline:
            raise SortieError(f"not drained within {wait} s: {_sentence(found)}")
        _sleep(_LOOK)
        try:
            answer = ask(place, place.daemon(), "GET", "/api/v1/drain/status")
        except NoDaemon:
            continue
        if answer.status != 401:  # it has begun anew this moment, with another token
            answer = accepted(answer, place, "see how far the drain is")
            found = understood(DrainView, answer.document)
    return found


def _sentence(found: DrainView) -> str:
    match found.status:
        case "drained":
            return "the daemon is drained: it leads no workflow"
        case "draining":
            runs = counted(found.running, "run")
            alone = (
                f"; no other daemon stands by for {', '.join(found.alone)}, which has no leader"
                " from then on"
            )
            return (
                f"the daemon hands {', '.join(found.leads)} over once all runs have ended: {runs}"
                " under way" + alone * bool(found.alone)
            )
        case _:
            leads = ", ".join(found.leads) or "no workflow now"
            return f"the daemon is not drained: it leads {leads}"
