"""What ``sortie doctor`` looks at: named checks that depend on each other, and what they find."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum

from msgspec import Struct


class CheckOutcome(StrEnum):
    """What came of a check; stable words, seen by programs."""

    OK = "ok"
    WARNING = "warning"  # work is possible, and something will surprise the operator
    FAILED = "failed"  # work is not possible before this is fixed
    SKIPPED = "skipped"  # it depends on a check that has not passed


class CheckResult(Struct, frozen=True, kw_only=True):
    """What a check found, in one sentence, and what a person can do; neither holds a secret.

    ``public`` is whether strangers can write issues, where the check was told.
    """

    outcome: CheckOutcome
    sentence: str
    remedy: str = ""
    public: bool | None = None


class Check(Struct, frozen=True, kw_only=True):
    """One thing to look at, without changing anything.

    ``ask`` is awaited once, after the checks before it. Where it raises a SortieError the check
    has failed with its text, and ``remedy`` is what a person can do. It is skipped where one of
    ``needs``, which are names of checks before it, was skipped or has failed.
    """

    name: str
    ask: Callable[[], Awaitable[CheckResult]]
    needs: tuple[str, ...] = ()
    remedy: str = ""


def passed(sentence: str, *, public: bool | None = None) -> CheckResult:
    """Return that all is well."""
    return CheckResult(outcome=CheckOutcome.OK, sentence=sentence, public=public)


def warned(sentence: str, remedy: str) -> CheckResult:
    """Return that something will surprise the operator."""
    return CheckResult(outcome=CheckOutcome.WARNING, sentence=sentence, remedy=remedy)


def failed(sentence: str, remedy: str) -> CheckResult:
    """Return that something has to be fixed."""
    return CheckResult(outcome=CheckOutcome.FAILED, sentence=sentence, remedy=remedy)
