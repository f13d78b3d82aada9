"""A run from its dispatch to the report on it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import replace

import trio

from sortie.model import ErrorKind, Failed, RunEnd, RunReport, Stopped
from sortie.resources import note, shortage_behind
from sortie.telemetry import facts
from sortie.worker.context import Assignment, RunContext, RunReporter, RunScopes
from sortie.worker.outcome import Abandoned, blamed
from sortie.worker.run import Run


async def work(
    job: Assignment, context: RunContext, reporter: RunReporter, scopes: RunScopes
) -> RunReport:
    """Work on an issue until it is done, out of turns, failed or stopped, and say what was spent.

    Whatever an adapter raises that it should not is told, and fails this run alone.
    """
    run = Run(job, context, reporter, scopes)
    began = trio.current_time()
    end: RunEnd | None = None
    try:
        with scopes.work:
            end = await run.attempt()
    except Abandoned as exc:
        end = blamed(exc.failed, exc, began=run.began)
    except Exception as exc:  # the edge: one run's bug is one failed run
        end = _crashed(exc, reporter)
    return RunReport(
        end=_clean(end, context.redact) or Stopped(completed=run.completed),
        turns=run.turns,
        spent=run.usage.spent,
        seconds=trio.current_time() - began,
    )


def _clean(end: RunEnd | None, redact: Callable[[str], str]) -> RunEnd | None:
    """Return an end without secrets in its message, which is recorded and told to people."""
    return replace(end, message=redact(end.message)) if isinstance(end, Failed) else end


def _crashed(error: Exception, reporter: RunReporter) -> Failed:
    """Return how a run failed that was ended by what nobody expected."""
    shortage = shortage_behind(error)
    if shortage is not None:
        note(shortage)
        return Failed(kind=ErrorKind.PORT_EXIT, message=str(shortage), shortage=True)
    reporter.publish(facts.AdapterCrashed(where="worker", traceback=traceback.format_exc()))
    message = f"the run crashed: {type(error).__name__}; the log has the traceback"
    return Failed(kind=ErrorKind.INTERNAL_ERROR, message=message)
