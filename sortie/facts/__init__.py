"""Facts: what happened, as frozen records that the sinks turn into log lines and metrics."""

from __future__ import annotations

from sortie.facts.daemon import *  # noqa: F403
from sortie.facts.fact import Fact as Fact
from sortie.facts.fact import RunFact as RunFact
from sortie.facts.hosts import *  # noqa: F403
from sortie.facts.issues import *  # noqa: F403
from sortie.facts.leases import *  # noqa: F403
from sortie.facts.network import *  # noqa: F403
from sortie.facts.notifications import *  # noqa: F403
from sortie.facts.pull_requests import *  # noqa: F403
from sortie.facts.questions import *  # noqa: F403
from sortie.facts.runs import *  # noqa: F403
from sortie.facts.tools import *  # noqa: F403
from sortie.facts.traces import *  # noqa: F403
from sortie.facts.turns import *  # noqa: F403
from sortie.facts.webhooks import *  # noqa: F403
from sortie.facts.workflows import *  # noqa: F403
