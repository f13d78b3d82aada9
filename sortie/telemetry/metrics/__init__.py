"""The sink that counts facts for Prometheus, and the page that Prometheus reads.

A metric is defined, and fed, in one of the modules here; a kind of fact that counts has a function
there that is registered for it.
"""

from __future__ import annotations

import prometheus_client
from msgspec import Struct
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from sortie.facts import Fact
from sortie.telemetry.metrics import daemon, notifications, pull_requests, runs, turns, webhooks
from sortie.telemetry.metrics.factory import MetricFactory


class MetricsSink:
    """Counts facts in a registry of its own; a registry can have one such sink."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # A time series for the moment of each counter's birth doubles the page and tells nothing.
        prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
        maker = MetricFactory(registry)
        self._turns = turns.TurnMetrics(maker)
        self._runs = runs.RunMetrics(maker)
        self._pull_requests = pull_requests.PullRequestMetrics(maker)
        self._notifications = notifications.NotificationMetrics(maker)
        self._webhooks = webhooks.WebhookMetrics(maker)
        self._daemon = daemon.DaemonMetrics(maker)

    def __call__(self, fact: Fact) -> None:
        """Count a fact."""
        turns.count(fact, to=self._turns)
        runs.count(fact, to=self._runs)
        pull_requests.count(fact, to=self._pull_requests)
        notifications.count(fact, to=self._notifications)
        webhooks.count(fact, to=self._webhooks)
        daemon.count(fact, to=self._daemon)


class Exposition(Struct, frozen=True, kw_only=True):
    """All metrics as one page, and the media type of its format."""

    body: bytes
    content_type: str


def expose(registry: CollectorRegistry, accept: str) -> Exposition:
    """Render a registry in the format that an Accept header asks for; plain text otherwise."""
    try:
        encode, content_type = choose_encoder(accept)
    except (TypeError, ValueError):  # a version in the header that is no version
        encode, content_type = choose_encoder("")
    return Exposition(body=encode(registry), content_type=content_type)
