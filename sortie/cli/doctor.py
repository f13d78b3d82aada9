"""``sortie doctor``: what is wrong outside of the workflow file, and the remedy."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

from sortie.cli.arguments import OutputFormat, Source
from sortie.cli.output import Format, Json, emit_json, emit_line, note
from sortie.cli.parameters import option

if TYPE_CHECKING:
    from sortie.daemon.doctor import Diagnosis

_OUTCOME_WIDTH = len("skipped")
_NAME_WIDTH = len("tracker.other_states")  # longer ones, of hosts, stand out


def doctor(
    source: Source,
    host: Annotated[
        list[str] | None,
        option(
            metavar="HOST",
            help="Look at this SSH host of the settings and at nothing else; may be repeated.",
            completes="host",
        ),
    ] = None,
    output: OutputFormat = Format.TEXT,
) -> int:
    """Check step by step what a daemon needs: settings, machine, agent, SSH hosts, and tracker.

    Each check is one line on stdout: ok, warning, failed or skipped, its name and what was found;
    below one that is not ok stands what can be done. A check that depends on a failed one is
    skipped. The agent's program is asked whether its credential is accepted, each host is logged
    in to, and the tracker is asked who the credential belongs to, what it may do, which states
    there are and what its limits are, as far as each can tell. Nothing is written anywhere, and a
    daemon that is at work is not disturbed.

    The exit code is 1 where a check has failed, and 0 otherwise.
    """
    from sortie.daemon.doctor import diagnose

    found: list[Diagnosis] = []

    def tell(diagnosis: Diagnosis) -> None:
        found.append(diagnosis)
        if output is Format.TEXT:
            _show(diagnosis)

    diagnose(source.options(), tell, hosts=host or ())
    outcomes = Counter(diagnosis.result.outcome.value for diagnosis in found)
    if output is Format.JSON:
        emit_json({"ok": not outcomes["failed"], "checks": [_row(each) for each in found]})
    note(_summary(outcomes))
    return 1 if outcomes["failed"] else 0


def _show(diagnosis: Diagnosis) -> None:
    result = diagnosis.result
    outcome = result.outcome.value.ljust(_OUTCOME_WIDTH)
    emit_line(f"{outcome}  {diagnosis.name.ljust(_NAME_WIDTH)}  {result.sentence}")
    if result.remedy:
        emit_line(f"-> {result.remedy}")


def _row(diagnosis: Diagnosis) -> Json:
    result = diagnosis.result
    return {
        "check": diagnosis.name,
        "outcome": result.outcome.value,
        "message": result.sentence,
        "remedy": result.remedy or None,
    }


def _summary(outcomes: Counter[str]) -> str:
    counted = ", ".join(
        f"{outcomes[outcome]} {outcome}"
        for outcome in ("ok", "warning", "failed", "skipped")
        if outcomes[outcome]
    )
    return f"sortie: {counted}" if outcomes["failed"] else counted
