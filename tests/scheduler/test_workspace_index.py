"""Who owns which directory, and whose end cleans it."""

from __future__ import annotations

from sortie.model import IssueId, KnownWorkspace, Stopped
from sortie.scheduler import Memory
from sortie.scheduler import decisions as do
from sortie.scheduler import events as ev
from sortie.scheduler import records as rec
from sortie.scheduler.workspace_index import WorkspaceIndex
from tests.scheduler.driver import Driver, issue, only

A, B = IssueId("a"), IssueId("b")


def place(owner: IssueId, path: str, host: str = "local", identifier: str = "X") -> KnownWorkspace:
    return KnownWorkspace(issue_id=owner, identifier=identifier, host=host, path=path)


def test_a_directory_belongs_to_the_issue_that_had_it_last() -> None:
    """Taking one over leaves its former owner the others; without any it is not known."""
    index = WorkspaceIndex([place(A, "/w/1"), place(A, "/w/2")])

    index.keep(place(B, "/w/1"))
    half = index.of(A)
    index.keep(place(B, "/w/2"))

    assert half == (place(A, "/w/2"),)
    assert index.of(A) == ()
    assert index.of(B) == (place(B, "/w/1"), place(B, "/w/2"))
    assert A not in index
    assert set(index) == {B}


def begin(driver: Driver, name: str, *directories: KnownWorkspace) -> do.StartWorker:
    (run,) = driver.start(issue(name))
    for known in directories:
        driver.tell(ev.WorkspaceMade(run.run_id, known))
    return run


def finish(driver: Driver, run: do.StartWorker) -> list[do.Decision]:
    driver.put(issue(run.issue.id, state="Done"))
    return driver.pass_time(30) + driver.end(run.run_id, Stopped())


def test_all_directories_of_a_renamed_issue_are_cleaned_at_its_end() -> None:
    """Those of an earlier life and identifier too."""
    old, new = place(A, "/w/OLD", identifier="OLD"), place(A, "/w/A", identifier="A")
    driver = Driver(memory=Memory(workspaces=(old,)))

    decisions = finish(driver, begin(driver, "a", new))
    gone = driver.tell(ev.WorkspaceCleaned(A, (old, new)))

    assert [d.workspaces for d in decisions if isinstance(d, do.CleanWorkspace)] == [(old, new)]
    assert gone == [
        rec.ForgetWorkspace(host="local", path="/w/OLD"),
        rec.ForgetWorkspace(host="local", path="/w/A"),
    ]
    assert driver.scheduler.snapshot(driver.now).claims == {}


def test_a_directory_that_was_taken_over_is_not_cleaned_with_its_former_owner() -> None:
    """The end of one issue does not remove what another works in."""
    driver = Driver()
    first = begin(driver, "a", place(A, "/w/1"), place(A, "/w/2"))
    begin(driver, "b", place(B, "/w/1"))

    decisions = finish(driver, first)

    cleans = [d.workspaces for d in decisions if isinstance(d, do.CleanWorkspace)]
    assert cleans == [(place(A, "/w/2"),)]


def test_a_former_owner_without_a_directory_is_not_cleaned_at_all() -> None:
    """Nor is it looked at hourly any more."""
    driver = Driver()
    first = begin(driver, "a", place(A, "/w/1"))
    begin(driver, "b", place(B, "/w/1"))

    decisions = finish(driver, first)

    assert only(decisions, do.CleanWorkspace) == []
    assert A not in driver.scheduler.snapshot(driver.now).claims


def test_a_clean_up_that_failed_is_given_up_when_another_issue_takes_the_directory() -> None:
    """What is left to be removed is asked for anew at each try."""
    driver = Driver(memory=Memory(workspaces=(place(A, "/w/1"),)))
    driver.put(issue("a", state="Done"))
    driver.pass_time()
    driver.tell(ev.WorkspaceCleaned(A, (), "directory not empty"))
    begin(driver, "b", place(B, "/w/1"))

    decisions = driver.pass_time(30)

    assert only(decisions, do.CleanWorkspace) == []
    assert A not in driver.scheduler.snapshot(driver.now).claims


def test_a_directory_is_blank_until_something_runs_in_it() -> None:
    """Only a new one, for its issue and on its host; having it again changes nothing."""
    index = WorkspaceIndex([place(A, "/w/1", "east")])
    index.keep(place(A, "/w/1", "north"), new=True)
    index.keep(place(A, "/w/1", "south"), new=True)
    index.keep(place(A, "/w/1", "north"))

    before = [index.all_blank(A, host) for host in ("east", "north", "south")]
    index.use(A, "north")
    after = [index.all_blank(A, host) for host in ("east", "north", "south")]

    assert (before, after) == ([False, True, True], [False, False, True])


def test_a_blank_directory_that_another_issue_takes_over_is_not_blank() -> None:
    """What the other issue made of it nobody knows."""
    index = WorkspaceIndex()
    index.keep(place(A, "/w/1"), new=True)

    index.keep(place(B, "/w/1"))

    assert not index.all_blank(B, "local")
