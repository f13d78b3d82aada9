"""An issue that got another id is not worked on under both."""

from __future__ import annotations

from sortie.model import IssueId, Stopped
from sortie.scheduler import Explanation
from sortie.scheduler import decisions as do
from tests.scheduler.driver import Driver, issue, only, starts


def test_a_renamed_issue_waits_for_the_run_under_its_former_id() -> None:
    """The run is stopped as that of an issue that is gone; only then the new id may start, and
    no chain of names gets around it.
    """
    driver = Driver()
    (old,) = driver.start(issue("a"))
    del driver.tracker[IssueId("a")]
    driver.put(issue("c", formerly=(IssueId("a"), IssueId("b"))))

    beside = [driver.pass_time(35) for _ in range(4)]
    explained = driver.scheduler.explain_issue("c", driver.now)
    assert isinstance(explained, Explanation)
    reasons = [gate.reason for gate in explained.gates]
    stopped = only([decision for decisions in beside for decision in decisions], do.StopWorker)
    after = driver.end(old.run_id, Stopped())
    after += driver.pass_time(35)

    assert [starts(decisions) for decisions in beside] == [[], [], [], []]
    assert len(stopped) == 1
    assert "it seems to be a under another name, which is not let go of yet" in reasons
    assert [start.issue.id for start in starts(after)] == ["c"]


def test_a_former_id_that_nobody_works_on_is_in_nobodys_way() -> None:
    """An issue that is taken for another one by mistake starts all the same."""
    driver = Driver()

    assert len(driver.start(issue("a", formerly=(IssueId("long gone"),)))) == 1
