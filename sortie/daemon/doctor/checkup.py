"""Run lists of checks and report each; a check that needs a failed one is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sortie.model import SortieError, TrackerError, TrackerErrorKind
from sortie.model.checks import Check, CheckOutcome, CheckResult, failed
from sortie.model.secrets import redactor

UNUSABLE_OUTCOMES = frozenset({CheckOutcome.FAILED, CheckOutcome.SKIPPED})
"""Outcomes after which the checks that need this one say nothing."""

_REMEDIES = {
    TrackerErrorKind.UNAVAILABLE: "see whether the tracker is up and can be reached from here, and "
    "try again later",
    TrackerErrorKind.NOT_FOUND: "look at tracker.project and tracker.endpoint, and whether the "
    "credential may see the project",
    TrackerErrorKind.PERMISSION: "give the credential the right that is missing",
    TrackerErrorKind.CLOSED: "look at tracker.api_key, and whether the tracker takes changes now",
    TrackerErrorKind.INVALID: "look at the settings of the tracker",
}


class Diagnosis(Struct, frozen=True, kw_only=True):
    """What became of one check; ``name`` is dotted, the part of the program first."""

    name: str
    result: CheckResult


Tell = Callable[[Diagnosis], None]


async def run_checks(part: str, checks: Sequence[Check], tell: Tell) -> None:
    """Run the checks of one part of the program in order and report each."""
    unusable: set[str] = set()
    for check in checks:
        name = f"{part}.{check.name}"
        missing = next((need for need in check.needs if need in unusable), None)
        if missing is not None:
            found = skipped(name, f"{part}.{missing}")
        else:
            found = Diagnosis(name=name, result=await _asked(check))
        if found.result.outcome in UNUSABLE_OUTCOMES:
            unusable.add(check.name)
        tell(found)


async def _asked(check: Check) -> CheckResult:
    try:
        return await check.ask()
    except SortieError as error:
        return failed(str(error), check.remedy or remedy_of(error))


def remedy_of(error: SortieError) -> str:
    """Return what helps against most errors of a kind, "" where the error itself says it."""
    return _REMEDIES.get(error.kind, "") if isinstance(error, TrackerError) else ""


def skipped(name: str, needed: str) -> Diagnosis:
    """Return a check that is skipped until another is mended."""
    sentence = f"not looked at: mend {needed} first"
    return Diagnosis(name=name, result=CheckResult(outcome=CheckOutcome.SKIPPED, sentence=sentence))


def without_secrets(tell: Tell, secrets: Iterable[str]) -> Tell:
    """Return a ``tell`` that hides secrets in the texts of adapters and programs."""
    redacted = redactor(secrets)

    def tell_safely(found: Diagnosis) -> None:
        result = found.result
        sentence, remedy = redacted(result.sentence), redacted(result.remedy)
        tell(replace(found, result=replace(result, sentence=sentence, remedy=remedy)))

    return tell_safely
