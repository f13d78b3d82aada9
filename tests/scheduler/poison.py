"""An issue that trips a bug, and the bug."""

from __future__ import annotations

from collections.abc import Callable

from sortie.model import Issue
from sortie.scheduler import Event
from sortie.scheduler import events as ev
from tests.scheduler.driver import issue
from tests.scheduler.lives import Lives

POISON = "poison"


class Bug(Exception):
    """What the planted bug raises."""


def fails_on_poison(rule: Callable[..., object]) -> Callable[..., object]:
    """Return a rule with a bug: it fails on any issue that is labelled so."""

    def broken(*args: object, **kwargs: object) -> object:
        for arg in args:
            looked_at = getattr(arg, "issue", arg)
            if isinstance(looked_at, Issue) and POISON in looked_at.labels:
                raise Bug
        return rule(*args, **kwargs)

    return broken


def poison(state: str = "Todo", **fields: object) -> Issue:
    return issue("a", state, labels=(POISON,), **fields)


def polled(driver: Lives) -> Event:
    driver.tell(ev.TimePassed())
    return ev.CandidatesFetched((issue("b"), poison(), issue("c")))
