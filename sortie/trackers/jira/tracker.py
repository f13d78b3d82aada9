"""The tracker of a Jira: the issues of one project, as the port asks for them.

Rule 1: an issue is asked for by its id, which lasts; where it is in another project it is not
there, whatever it is called.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial

import trio
from msgspec.structs import replace

from sortie.http.answers import HttpAnswer
from sortie.http.budget import BudgetHeaders, Reset
from sortie.http.client import HttpClient, open_client
from sortie.http.comments import OnceOnly
from sortie.http.credentials import Credential, basic, bearer
from sortie.http.requests import Provider, error_text_in_json
from sortie.model import Issue, IssueId, TrackerError, TrackerErrorKind, same_state, state_key
from sortie.model.checks import Check
from sortie.trackers import TrackerContext, TrackerStates
from sortie.trackers.http.added_states import AddedStates
from sortie.trackers.http.changes import SWEEP
from sortie.trackers.http.tracker import CommentMemory, HttpTracker
from sortie.trackers.jira.candidates import JiraCandidates
from sortie.trackers.jira.checks import JiraChecks
from sortie.trackers.jira.comments import NewComment, body_of, read_comments
from sortie.trackers.jira.editions import issue_request
from sortie.trackers.jira.fields import FieldRules, JiraIssue, jira_issue
from sortie.trackers.jira.labels import change_labels
from sortie.trackers.jira.rights import JiraPeople
from sortie.trackers.jira.settings import (
    MISSING_LIBRARIES,
    JiraSettings,
    is_cloud_host,
    lacks_libraries,
)
from sortie.trackers.jira.site import Site, SiteMemory
from sortie.trackers.jira.transitions import chosen, offered_transitions, take

_CLOUD_BUDGET = BudgetHeaders(
    limit="x-ratelimit-limit",
    remaining="x-ratelimit-remaining",
    reset="x-ratelimit-reset",
    unit=Reset.ISO,
)
_DATA_CENTER_BUDGET = BudgetHeaders(  # a bucket that gets some more in each interval
    limit="x-ratelimit-limit",
    remaining="x-ratelimit-remaining",
    reset="x-ratelimit-interval-seconds",
    unit=Reset.SECONDS,
)


def provider_of(endpoint: str, deployment: str) -> Provider:
    """Return Jira as the client is to know it."""
    is_cloud = deployment == "cloud" or is_cloud_host(endpoint)
    return Provider(
        name="Jira",
        headers={"X-Atlassian-Token": "no-check"},
        budgets=[_CLOUD_BUDGET if is_cloud else _DATA_CENTER_BUDGET],
        is_limit=lambda answer: answer.status == 429,
        error_text=_error_text,
    )


def credential_of(api_key: str) -> Credential:
    """Return what a key signs with: ``user:secret`` as Basic, anything else as a bearer token."""
    user, colon, secret = api_key.strip().partition(":")
    return basic(user.strip(), secret.strip()) if colon else bearer(user)


def _error_text(answer: HttpAnswer) -> str:
    login = answer.headers.get("x-seraph-loginreason", "")
    if "AUTHENTICATION_DENIED" in login:
        return "too many failed logins: log in with a browser, solve the CAPTCHA, mend the key"
    if "html" in answer.headers.get("content-type", ""):
        return "a page of HTML, and not of Jira's API"
    told = error_text_in_json(answer)
    if reason := answer.headers.get("ratelimit-reason"):
        return f"{reason}: {told}" if told else reason
    return told


_COMMENTS_TRIED = 500  # keys of comments whose first try is remembered

_NAME = re.compile(r"\d{1,18}|[A-Za-z][A-Za-z0-9_]{0,40}-\d{1,18}")


@asynccontextmanager
async def opened(context: TrackerContext, sweep: float = SWEEP) -> AsyncIterator[JiraTracker]:
    """Hold the client of a Jira open. Raises TrackerError (INVALID) where its libraries lack."""
    if lacks_libraries():  # which are loaded with the first comment only
        raise TrackerError(TrackerErrorKind.INVALID, f"the jira tracker {MISSING_LIBRARIES}")
    settings = context.settings
    assert isinstance(settings, JiraSettings)
    assert context.endpoint is not None
    assert context.api_key is not None
    provider = provider_of(context.endpoint, settings.deployment)
    credential = credential_of(context.api_key)
    async with open_client(provider, context.endpoint, credential, context.progress) as client:
        yield JiraTracker(client, context, settings, sweep)


class JiraTracker(HttpTracker[JiraIssue]):
    """Issues of one project, in the cloud or in a data center."""

    def __init__(
        self, client: HttpClient, context: TrackerContext, settings: JiraSettings, sweep: float
    ) -> None:
        super().__init__(client)
        assert context.project is not None
        self._settings = settings
        self._filter = context.query_filter
        self._added = AddedStates(context.states)
        self._priorities = {state_key(name): n for name, n in settings.priorities.items()}
        self.site = SiteMemory(client, settings.deployment, context.project)
        self.people = JiraPeople(client, self.site)
        self._candidates = JiraCandidates(client, self._rules, context.query_filter, sweep)
        self._once = OnceOnly()
        self._tried: OrderedDict[str, datetime | None] = OrderedDict()
        self._comments = CommentMemory()
        self._had_some = True  # so that an empty first list is looked into

    def configure(self, states: TrackerStates) -> None:
        """Tell states by these names from now on, those of blockers and those that are labels."""
        self._added = AddedStates(states)
        self._candidates.list.forget()
        self._had_some = True

    def checks(self) -> Sequence[Check]:
        """See Tracker."""
        blocked_by = self._settings.blocked_by
        return JiraChecks(self.client, self.site, self._added, self._filter, blocked_by).checks()

    async def fetch_candidates(self, states: Collection[str]) -> Sequence[Issue]:
        """Return the issues in these states."""
        names = list({state_key(state): state.strip() for state in states}.values())
        if not names:
            await trio.lowlevel.checkpoint()
            return ()
        site, own = await self.site.get(), self._added.own(names)
        await self.site.check_labels(site, self._added)
        try:
            found = await self._candidates.refresh(site, names, self._listed)
        except TrackerError as exc:
            if exc.kind is TrackerErrorKind.INVALID:  # perhaps for a status that is not there
                await self.site.check_states(site, own)
            raise
        if not found and self._had_some:
            await self.site.check()
            await self.site.check_states(site, own)
        self._had_some = bool(found)
        return found

    async def find(self, name: str) -> Issue | None:
        """Return the issue of that key or id; a key that it had before is good as well."""
        if not _NAME.fullmatch(name):
            await trio.lowlevel.checkpoint()
            return None
        item = await self._one(await self.site.get(), name, f"cannot read issue {name}")
        if item is None:
            await self._check_project()
            return None
        return await self._whole(item)

    async def complete_move(self, issue: Issue) -> None:
        """Take the labels of other states off an issue."""
        await trio.lowlevel.checkpoint()
        if self._added.others(issue.labels, issue.state):
            await self.transition(issue, issue.state)

    async def comment(
        self, issue: Issue, body: str, key: str | None = None, *, again: bool = False
    ) -> None:
        """Add a comment, marked with its key by a property that no page of Jira shows."""
        site = await self.site.get()
        new = NewComment(
            client=self.client,
            site=site,
            issue=issue,
            body=body_of(site.edition, body),
            key=key,
            not_before=self._first_try(key),
        )
        try:
            await self._once.make(key, new.post, new.is_there, tried=again)
        finally:
            self._comments.forget(issue.id)

    def _first_try(self, key: str | None) -> datetime | None:
        """Return when a comment was tried first, by the server's clock; now, if it was not."""
        heard = self.client.server_time
        if key is None or heard is None:
            return None if heard is None else heard[0]
        while len(self._tried) > _COMMENTS_TRIED:
            self._tried.popitem(last=False)
        return self._tried.setdefault(key, heard[0])

    def _rules(self, site: Site) -> FieldRules:
        return FieldRules(
            browse=site.server.browse,
            read_text=site.edition.read_text,
            blocked_by=state_key(self._settings.blocked_by),
            priorities=self._priorities,
            added=self._added,
        )

    # The steps of a re-read

    async def _read(
        self, ids: Sequence[IssueId]
    ) -> tuple[Mapping[IssueId, JiraIssue], Mapping[IssueId, TrackerError]]:
        site = await self.site.get()
        found, errors = await site.edition.by_ids(self.client, ids)
        items = [jira_issue(item, self._rules(site)) for item in found]
        ours = {item.id: item for item in items if self._is_here(site, item)}
        return ours, errors

    async def _one(self, site: Site, name: str, what: str) -> JiraIssue | None:
        """Return an issue of the project by id or key; None where it is not there."""
        answer = await self.client.ask(issue_request(site.edition, name, what))
        if answer.status == 404:
            return None
        item = jira_issue(answer.json(), self._rules(site))
        return item if self._is_here(site, item) else None

    def _is_here(self, site: Site, item: JiraIssue) -> bool:
        return item.error is not None or item.project_id == site.project.id

    async def _whole(self, item: JiraIssue, together: int = 1) -> Issue:
        del together
        issue, site = item.readable, await self.site.get()
        restricted = self._settings.restricted_comments
        read = partial(read_comments, self.client, site.edition, issue, restricted=restricted)
        comments = await self._comments.get(item.id, item.updated, read)
        return replace(issue, comments=comments)

    async def _check_project(self) -> None:
        await self.site.check()

    def _heard(self, item: JiraIssue) -> None:
        self._candidates.list.put(item)

    def _gone(self, issue_id: IssueId) -> None:
        self._candidates.gone(issue_id)

    # The steps of a move

    async def _present(self, issue: Issue) -> JiraIssue:
        site = await self.site.get()
        item = await self._one(site, issue.id, f"cannot read issue {issue.identifier}")
        if item is None:
            self._gone(issue.id)
            raise TrackerError(
                TrackerErrorKind.NOT_FOUND,
                f"{issue.identifier} is not in project {site.project.key} any more, "
                "or the key's account may not see it",
            )
        self._candidates.wrote(item)
        return item

    def _state_of(self, item: JiraIssue) -> str:
        return item.readable.state

    def _is_done(self, item: JiraIssue, state: str) -> bool:
        return super()._is_done(item, state) and not self._others(item, state)

    def _others(self, item: JiraIssue, state: str) -> tuple[str, ...]:
        """Return the labels that an issue has of states other than this one."""
        return self._added.others(item.readable.labels, state)

    async def _change(self, item: JiraIssue, issue: Issue, state: str) -> None:
        """Label an issue, or take a transition; the request by which the move counts is the last.

        One that is over is reopened for a state that is a label.
        """
        del issue
        edition, present, added = (await self.site.get()).edition, item.readable, self._added
        others, target = self._others(item, state), state
        if is_label := added.is_added(state):
            is_over = added.is_over(item.status, ended=item.is_ended)
            target = added.reopened(present, state) if is_over else item.status
            missing = added.added([state]) if not added.has(present.labels, state) else ()
            await change_labels(self.client, edition, present, missing, others)
        if not same_state(item.status, target):
            offered = await offered_transitions(self.client, edition, present)
            best = chosen(offered, present.identifier, item.status, target)
            await take(self.client, edition, present, best)
        if not is_label:
            await change_labels(self.client, edition, present, (), others)
