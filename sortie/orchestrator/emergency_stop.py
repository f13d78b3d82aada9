"""What is done at once when the loop cannot end in good order any more."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import trio

from sortie.model import Issue, SortieError, StoreError
from sortie.orchestrator.context import OrchestratorContext
from sortie.orchestrator.recovery import crashed_over
from sortie.telemetry import Publish, facts


@contextmanager
def told_at_once(crashing: Callable[[], object], publish: Publish) -> Iterator[None]:
    """Call ``crashing`` and log why as soon as the block fails or is cancelled.

    Whoever learns of it by the error alone learns of it when all runs have been ended, which may
    take long, or may never come to its end where there is no memory for it.
    """
    whole = False
    try:
        yield
        whole = True
    except SortieError:
        raise
    except Exception:  # the edge: it is passed on
        crashing()
        publish(facts.DaemonCrashed(traceback=traceback.format_exc()))
        raise
    finally:
        if not whole:
            crashing()


async def record_crash(issue: Issue, context: OrchestratorContext) -> None:
    """Put on record that the daemon crashed over an issue, if the disk lets it."""
    with suppress(StoreError), trio.CancelScope(shield=True):
        await context.store.commit(crashed_over(issue), context.wall())
