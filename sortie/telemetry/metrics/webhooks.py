"""Metrics of webhooks, and how facts feed them."""

from __future__ import annotations

from functools import singledispatch
from typing import get_args

from sortie.config.webhooks import KINDS_OF_WEBHOOKS
from sortie.facts import Fact
from sortie.facts import webhooks as facts
from sortie.telemetry.metrics.factory import REQUEST_BUCKETS, MetricFactory

_SUBJECTS = get_args(facts.Subject)


class WebhookMetrics:
    """Attribute names are metric names without ``sortie_``."""

    def __init__(self, make: MetricFactory) -> None:
        self.webhooks_received = make.counter(
            "webhooks_received", "Deliveries of webhooks that were taken.", kind=KINDS_OF_WEBHOOKS
        )
        self.webhooks_rejected = make.counter(
            "webhooks_rejected",
            "Deliveries of webhooks that were not taken.",
            kind=(*KINDS_OF_WEBHOOKS, facts.UNKNOWN_KIND),
            reason=get_args(facts.Rejection),
        )
        self.webhooks_missed = make.counter(
            "webhooks_missed",
            "Changes that polls or looks have found and no delivery has told.",
            kind=KINDS_OF_WEBHOOKS,
            subject=_SUBJECTS,
        )
        self.webhooks_lost = make.counter(
            "webhooks_lost",
            "Times that what deliveries named could not be passed on to the leader.",
            kind=KINDS_OF_WEBHOOKS,
        )
        self.webhook_lag = make.histogram(
            "webhook_lag_seconds",
            "Time from a delivery until what it names is looked at.",
            REQUEST_BUCKETS,
            subject=_SUBJECTS,
        )


@singledispatch
def count(fact: Fact, to: WebhookMetrics) -> None:
    """Count a fact; a kind without a function below is not counted here."""


@count.register
def _(fact: facts.WebhookReceived, to: WebhookMetrics) -> None:
    to.webhooks_received.labels(fact.kind).inc()


@count.register
def _(fact: facts.WebhookRejected, to: WebhookMetrics) -> None:
    to.webhooks_rejected.labels(fact.kind, fact.reason).inc()


@count.register
def _(fact: facts.WebhooksMissed, to: WebhookMetrics) -> None:
    to.webhooks_missed.labels(fact.kind, fact.subject).inc(fact.changes)


@count.register
def _(fact: facts.WebhookLost, to: WebhookMetrics) -> None:
    to.webhooks_lost.labels(fact.kind).inc()


@count.register
def _(fact: facts.WebhookFollowed, to: WebhookMetrics) -> None:
    to.webhook_lag.labels(fact.subject).observe(fact.seconds)
