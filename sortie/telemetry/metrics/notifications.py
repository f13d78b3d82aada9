"""Metrics of notifications, and how facts feed them."""

from __future__ import annotations

from functools import singledispatch

from sortie.facts import Fact
from sortie.telemetry import facts
from sortie.telemetry.metrics.factory import MetricFactory


class NotificationMetrics:
    """Attribute names are metric names without ``sortie_``."""

    def __init__(self, make: MetricFactory) -> None:
        self.notifications_sent = make.counter(
            "notifications_sent", "Notifications that a target took.", target=()
        )
        self.notifications_repeated = make.counter(
            "notifications_repeated",
            "Those of them that may have reached the target before.",
            target=(),
        )
        self.notification_failures = make.counter(
            "notification_failures", "Tries that failed, and are made again.", target=()
        )
        self.notifications_given_up = make.counter(
            "notifications_given_up",
            "Notifications that a target refused, or that could not be sent for too long.",
            target=(),
        )


@singledispatch
def count(fact: Fact, to: NotificationMetrics) -> None:
    """Count a fact; a kind without a function below is not counted here."""


@count.register
def _(fact: facts.NotificationsSent, to: NotificationMetrics) -> None:
    to.notifications_sent.labels(fact.target).inc(fact.count)
    to.notifications_repeated.labels(fact.target).inc(fact.repeated)


@count.register
def _(fact: facts.NotificationFailed, to: NotificationMetrics) -> None:
    to.notification_failures.labels(fact.target).inc()


@count.register
def _(fact: facts.NotificationsGivenUp, to: NotificationMetrics) -> None:
    to.notifications_given_up.labels(fact.target).inc(fact.count)
