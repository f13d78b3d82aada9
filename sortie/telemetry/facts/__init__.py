"""Facts: what happened, as frozen records that the sinks turn into log lines and metrics."""

from __future__ import annotations

from sortie.telemetry.facts.daemon import *  # noqa: F403
from sortie.telemetry.facts.fact import Fact as Fact
from sortie.telemetry.facts.fact import RunFact as RunFact
from sortie.telemetry.facts.hosts import *  # noqa: F403
from sortie.telemetry.facts.issues import *  # noqa: F403
from sortie.telemetry.facts.runs import *  # noqa: F403
from sortie.telemetry.facts.turns import *  # noqa: F403
