"""The repository of a forge in memory, over a bare one: what tests and people do to it, and when a
pull request can be merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.forges.bare import BareRepository
from tests.forges.nouns import Absent, Conversation, MadeCheck, Opinion, Remark, Request

PATH = "team/thing"
GREEN = ("success", "neutral", "skipped")


@dataclass
class HostedRepository:
    """The repository: its pull requests, and what was told of commits.

    ``people`` are the users that there are, ``permissions`` what they may do beyond reading.
    ``labels_above`` are those of its organization. ``statuses`` are by commit and name, as they
    were told over HTTP. What a base demands before a merge are the names of checks (``required``),
    approvals, resolved threads, a branch that is up to date. ``automatic``: the forge merges by
    itself where it is told to; ``queue``: by a queue. ``merged_results``: GitLab's pipelines run on
    what a merge would make. ``gone`` are numbers that are answered with 404. ``reruns`` are the
    names of checks that were asked for again.
    """

    kind: str
    bare: Path
    requests: list[Request] = field(default_factory=list)
    statuses: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    people: tuple[str, ...] = ("ann", "bob")
    permissions: dict[str, str] = field(default_factory=lambda: {"ann": "write"})
    labels: tuple[str, ...] = ("sortie", "bot")
    labels_above: tuple[str, ...] = ()
    made: list[MadeCheck] = field(default_factory=list)
    required: tuple[str, ...] = ()
    approvals: int = 0
    wants_resolved: bool = False
    wants_up_to_date: bool = False
    automatic: bool = True
    queue: bool = False
    merged_results: bool = False
    gone: set[int] = field(default_factory=set)
    reruns: list[str] = field(default_factory=list)
    ids: int = 100
    now: int = 0

    def __post_init__(self) -> None:
        """Look at the repository."""
        self.git = BareRepository(self.bare)
        self.branches = self.git.heads()

    # What tests, and people in them, do.

    def head(self, branch: str) -> str | None:
        """Return the commit of a branch."""
        return self.git.heads().get(branch)

    def request(self, number: int) -> Request:
        """Return the pull request of a number. Raises Absent."""
        if number in self.gone or not 0 < number <= len(self.requests):
            raise Absent(number)
        return self.requests[number - 1]

    def set_check(
        self,
        branch: str,
        name: str,
        state: str,
        *,
        app: str = "github-actions",
        status: bool = False,
        log: bytes = b"",
        annotations: tuple[tuple[str, int, str], ...] = (),
        allow_failure: bool = False,
    ) -> MadeCheck:
        """Say how a check of the head of a branch, or of a commit, stands, as CI would."""
        commit = self.git.heads().get(branch, branch)
        found = next((c for c in self.made if (c.commit, c.name) == (commit, name)), None)
        if found is None:
            found = MadeCheck(self._id(), commit, name, state)
            self.made.append(found)
        found.state, found.app, found.status, found.log = state, app, status, log
        found.annotations, found.allow_failure = annotations, allow_failure
        self.observe()
        return found

    def review(
        self,
        number: int,
        author: str,
        state: str,
        body: str = "",
        *,
        bot: bool = False,
        head: str | None = None,
    ) -> Opinion:
        """Review a pull request as somebody, at its head or an earlier one."""
        one = self.request(number)
        seen = head or self.git.heads()[one.branch]
        opinion = Opinion(self._id(), author, state, body, seen, bot)
        one.opinions.append(opinion)
        one.timeline.append((opinion.id, "review"))
        self.touch(one)
        return opinion

    def start_thread(
        self,
        number: int,
        author: str,
        path: str,
        line: int,
        body: str,
        *,
        bot: bool = False,
        removed: bool = False,
    ) -> Conversation:
        """Say something about a line of the diff."""
        one = self.request(number)
        head = self.git.heads()[one.branch]
        thread = Conversation(self._id(), path, line, head, removed=removed)
        thread.notes.append(Remark(self._id(), author, body, bot))
        one.threads.append(thread)
        one.timeline.append((thread.id, "review"))
        self.touch(one)
        return thread

    def say_in(self, number: int, thread: Conversation, author: str, body: str) -> Remark:
        """Say something in a thread."""
        remark = Remark(self._id(), author, body)
        thread.notes.append(remark)
        self.touch(self.request(number))
        return remark

    def resolve(self, number: int, thread: Conversation) -> None:
        """Call a thread done."""
        thread.resolved = True
        self.touch(self.request(number))

    def add_comment(self, number: int, author: str, body: str, *, bot: bool = False) -> Remark:
        """Comment on a pull request as somebody."""
        one = self.request(number)
        remark = Remark(self._id(), author, body, bot)
        one.comments.append(remark)
        one.timeline.append((remark.id, "comment"))
        self.touch(one)
        remark.at = one.updated
        return remark

    def set_labels(self, number: int, *names: str) -> None:
        """Have a pull request carry these labels."""
        self.request(number).labels[:] = names
        self.request(number).timeline.append((self._id(), "label"))
        self.touch(self.request(number))

    def close(self, number: int) -> None:
        """Close a pull request without merging it."""
        self.request(number).state = "closed"
        self.request(number).timeline.append((self._id(), "close"))
        self.touch(self.request(number))

    # What the forge makes of it.

    def _id(self) -> int:
        self.ids += 1
        return self.ids

    def touch(self, one: Request) -> None:
        """Note that a pull request has changed."""
        self.now += 1
        one.updated = self.now
        self.observe()

    def observe(self) -> None:
        """See what was pushed, and merge what may be merged by itself by now."""
        self.branches = self.git.heads()
        for one in self.requests:
            head = self.branches.get(one.branch)
            if one.state != "open" or head is None or head == one.seen:
                continue
            if one.seen is not None:
                one.seen_before, one.queued = one.seen, None  # a push ends what was queued
                one.timeline.append((self._id(), "pull_push"))
            one.seen = head
            self.now += 1
            one.updated = self.now
        for one in self.requests:
            if one.queued and self.refusal(one) is None and self._is_settled(one):
                self.merge(one, one.queued)

    def checks(self, commit: str | None) -> list[MadeCheck]:
        """Return the checks of a commit, with what was told over HTTP."""
        words = {"failed": "failure", "error": "failure", "running": "pending"}
        told = [
            MadeCheck(at, of, name, words.get(state, state), "sortie", status=True)
            for at, ((of, name), (state, _)) in enumerate(self.statuses.items(), 1)
            if of == commit
        ]
        return [*(check for check in self.made if check.commit == commit), *told]

    def expected(self, one: Request) -> list[str]:
        """Return the names of the checks that are demanded and not there."""
        there = {check.name for check in self.checks(one.seen)}
        return [name for name in self.required if name not in there]

    def conflicts(self, one: Request) -> bool:
        """Tell whether branch and base conflict."""
        base = self.branches.get(one.base)
        if one.state != "open" or base is None or one.seen is None:
            return False
        return self.git.merged_tree(base, one.seen) is None

    def is_behind(self, one: Request) -> bool:
        """Tell whether commits of the base are missing in the branch."""
        base = self.branches.get(one.base)
        return bool(base and one.seen and self.git.behind(base, one.seen))

    def opinions(self, one: Request) -> dict[str, Opinion]:
        """Return the newest opinion of each reviewer, but for plain comments."""
        return {said.author: said for said in one.opinions if said.state != "commented"}

    def refusal(self, one: Request) -> str | None:
        """Return why a pull request cannot be merged now, None where it can."""
        states = [said.state for said in self.opinions(one).values()]
        green = {check.name for check in self.checks(one.seen) if check.state in GREEN}
        rules = (
            ("closed", one.state != "open"),
            ("draft", one.draft),
            ("conflict", self.conflicts(one)),
            ("behind", self.wants_up_to_date and self.is_behind(one)),
            ("changes_requested", "changes_requested" in states),
            ("approvals", states.count("approved") < self.approvals),
            ("threads", self.wants_resolved and not all(t.resolved for t in one.threads)),
            ("checks", not green.issuperset(self.required)),
        )
        return next((name for name, holds in rules if holds), None)

    def _is_settled(self, one: Request) -> bool:
        return self.kind == "github" or all(check.state in GREEN for check in self.checks(one.seen))

    def merge(self, one: Request, method: str) -> str:
        """Merge a pull request."""
        assert one.seen is not None
        message = f"{one.title} (#{one.number})"
        one.merged_as = self.git.merge(one.base, one.seen, method, message)
        one.state, one.queued = "merged", None
        one.timeline.append((self._id(), "merge_pull"))
        self.touch(one)
        return one.merged_as

    def merge_later(self, one: Request, method: str) -> None:
        """Merge a pull request as soon as all that is demanded is there."""
        one.queued = method
        one.timeline.append((self._id(), "pull_scheduled_merge"))
        self.touch(one)

    def cancel(self, one: Request) -> bool:
        """Merge a pull request no longer by itself; False where it was not to be."""
        if one.queued is None:
            return False
        one.queued = None
        one.timeline.append((self._id(), "pull_cancel_scheduled_merge"))
        self.touch(one)
        return True

    def rerun(self, check: MadeCheck) -> None:
        """Have a check begin again."""
        check.state = "pending"
        self.reruns.append(check.name)
        self.observe()
