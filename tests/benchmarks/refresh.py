"""How long it takes from a request for a poll to the agent that runs because of it."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from tests.benchmarks.bare import to_nowhere
from tests.benchmarks.place import benchmark_place
from tests.benchmarks.row import Scale, Value, middle

ISSUES = 30


def refresh(scale: Scale) -> Mapping[str, Value]:
    """Measure in milliseconds, one issue after another, each written right before the request."""
    ours, base, spent = [], [], []
    with benchmark_place() as place:
        place.write_agent("")
        place.configure()
        with place.daemon() as daemon, to_nowhere() as onto:
            daemon.wait("http.listening")  # which is after the first poll
            for number in range(scale.often(ISSUES, 2)):
                place.add_issue(f"R-{number}")
                with daemon.spending() as spending:
                    asked = daemon.refresh()
                    ours.append((place.marks.wait("begun", 2 * number + 1) - asked) * 1e3)
                spent.append(spending.used.own * 1e3)
                daemon.wait("run.finished", number + 1, status="succeeded")
                asked = time.perf_counter()
                argv = [str(place.agent), "chat"]
                pid = os.posix_spawn(place.agent, argv, place.environ({}), file_actions=onto)
                base.append((place.marks.wait("begun", 2 * number + 2) - asked) * 1e3)
                os.waitpid(pid, 0)
                time.sleep(scale.of(0.2, 0.0))  # the end of the run before
    also = {"processor time of the daemon until then": middle(spent)}
    return {"refresh": Value(ours=middle(ours), baseline=middle(base), also=also)}
