"""The check of whether programs of runs can have PID namespaces of their own on this machine."""

from __future__ import annotations

from sortie.config import Isolation
from sortie.model.checks import CheckResult, failed, passed, warned
from sortie.transports.local import become_subreaper, try_isolation

_REMEDY = (
    "lift what forbids it; without it what a run leaves behind is searched for, from which a"
    " program can hide (see 'How processes are ended' in docs/reliability.md)"
)


def isolation_result(wanted: Isolation) -> CheckResult:
    """Start a program in a PID namespace, as a daemon that is started from here does; blocks.

    A service may be allowed less, or more: /readyz tells what its daemon has.
    """
    if wanted is Isolation.NONE:
        return passed("isolation is none: programs of runs get no PID namespaces")
    if not become_subreaper():
        return _refusal(wanted, "this system has no PID namespaces, or no child subreapers")
    try:
        return passed(try_isolation())
    except OSError as exc:
        return _refusal(wanted, str(exc.strerror or exc))


def _refusal(wanted: Isolation, why: str) -> CheckResult:
    told = f"a daemon started from here cannot give programs PID namespaces: {why}"
    if wanted is Isolation.PID_NAMESPACE:
        return failed(told, f"{_REMEDY}; or set isolation to auto")
    return warned(told, _REMEDY)
