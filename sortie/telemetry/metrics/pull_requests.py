"""Metrics of watched pull requests, and how facts feed them."""

from __future__ import annotations

from functools import singledispatch
from typing import get_args

from sortie.facts import Fact
from sortie.model.watches import ERRANDS, ReactionKind
from sortie.telemetry import facts
from sortie.telemetry.metrics.factory import MetricFactory

PLANNED = "planned"
"""The result of a reaction that is not over."""


class PullRequestMetrics:
    """Attribute names are metric names without ``sortie_``."""

    def __init__(self, make: MetricFactory) -> None:
        self.reactions = make.counter(
            "reactions",
            "What pull requests have called for, by what became of it.",
            kind=tuple(kind.value for kind in ReactionKind),
            result=(PLANNED, *get_args(facts.ReactionResult)),
        )
        self.merges = make.counter(
            "merges", "Merges that were tried.", result=get_args(facts.MergeResult)
        )
        self.watches_ended = make.counter(
            "watches_ended",
            "Pull requests that are watched no longer.",
            result=get_args(facts.WatchResult),
        )
        self.errands_failed = make.counter(
            "errands_failed",
            "What could not be done at a pull request, or to its issue.",
            errand=ERRANDS,
        )


@singledispatch
def count(fact: Fact, to: PullRequestMetrics) -> None:
    """Count a fact; a kind without a function below is not counted here."""


@count.register
def _(fact: facts.ReactionPlanned, to: PullRequestMetrics) -> None:
    for kind in fact.kinds:
        to.reactions.labels(kind, PLANNED).inc()


@count.register
def _(fact: facts.ReactionEnded, to: PullRequestMetrics) -> None:
    for kind in fact.kinds:
        to.reactions.labels(kind, fact.result).inc()


@count.register
def _(fact: facts.MergeAttempted, to: PullRequestMetrics) -> None:
    to.merges.labels(fact.result).inc()


@count.register
def _(fact: facts.WatchEnded, to: PullRequestMetrics) -> None:
    to.watches_ended.labels(fact.result).inc()


@count.register
def _(fact: facts.ErrandFailed, to: PullRequestMetrics) -> None:
    to.errands_failed.labels(fact.errand).inc()
