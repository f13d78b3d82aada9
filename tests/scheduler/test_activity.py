"""What a run's agent is known to have done goes on record."""

from __future__ import annotations

from sortie.model import Activity, RunId
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from tests.scheduler.driver import Driver, issue

ACTED = Activity(model="large", files_modified=("a.py",), tool_uses={"write": 1})


def test_what_an_agent_has_done_is_recorded_with_its_run() -> None:
    """The record stands beside the run's."""
    driver = Driver()
    (run,) = driver.start(issue())

    told = driver.tell(ev.AgentActed(run.run_id, ACTED))

    assert told == [rec.RecordActivity(run_id=run.run_id, activity=ACTED)]


def test_news_of_a_run_that_is_over_is_not_recorded() -> None:
    """The store would refuse the record."""
    driver = Driver()
    driver.start(issue())

    assert driver.tell(ev.AgentActed(RunId("former"), ACTED)) == []
