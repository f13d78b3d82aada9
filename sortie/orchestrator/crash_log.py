"""Logs a crash of the loop as soon as it happens."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sortie.model import SortieError
from sortie.telemetry import Publish, facts


@contextmanager
def logged_at_once(crashing: Callable[[], object], publish: Publish) -> Iterator[None]:
    """Call ``crashing`` and log the traceback as soon as the block fails or is cancelled.

    The error itself reaches the caller only after all runs were ended, which may take long.
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
