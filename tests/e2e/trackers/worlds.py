"""Each tracker over HTTP with a service of its own, as the tests of this folder see them all.

A kind that joins gives a function here; the tests know nothing of any kind.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sortie.model import Issue, IssueId
from sortie.testing.tracker import STATES, Rig, context_of, make_issue
from sortie.trackers import TrackerAdapter
from sortie.trackers.github import ADAPTER as GITHUB
from sortie.trackers.github.tracker import GitHubTracker
from sortie.trackers.gitlab import ADAPTER as GITLAB
from tests.trackers.github import rig as github
from tests.trackers.gitlab import rig as gitlab
from tests.trackers.gitlab.server import gitlab as gitlab_server
from tests.trackers.gitlab.world import TOKEN as GITLAB_TOKEN
from tests.trackers.jira import rig as jira
from tests.trackers.jira.server import API_KEY as JIRA_TOKEN
from tests.trackers.linear import rig as linear
from tests.trackers.server.aliases import AliasedTracker
from tests.trackers.server.serving import TestServer, serving

VARIABLE = "TRACKER_TOKEN"
ACTIVE, HANDOFF, TERMINAL = ("Todo", "In Progress"), "Review", ("Done", "Dropped")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerWorld:
    """A tracker's service, and the world's hands on it.

    ``keys`` are those of ``tracker``, with the token itself. ``hide`` has the token see nothing,
    or all again. ``label_states`` are those that are labels in it.
    """

    rig: Rig
    server: TestServer
    keys: Mapping[str, Any]
    hide: Callable[[bool], object]
    block: Mapping[str, Any] = field(default_factory=dict)
    label_states: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        """The secret."""
        return str(self.keys["api_key"])

    @property
    def settings(self) -> dict[str, Any]:
        """What ``tracker`` says in a workflow file."""
        return {
            **self.keys,
            "api_key": f"${VARIABLE}",
            "active_states": list(ACTIVE),
            "terminal_states": list(TERMINAL),
            "in_progress_state": "In Progress",
            "handoff_state": HANDOFF,
            "label_states": list(self.label_states),
        }

    def put(self, name: str, directives: str = "", **changes: Any) -> str:
        """Add an issue in Todo, whose text may direct the simulator; return its identifier."""
        text = f"sim: {directives}" if directives else "Nothing special."
        self.rig.put(make_issue(name, description=text, **changes))
        assert isinstance(self.rig.tracker, AliasedTracker)
        return self.rig.tracker.identifier_of(name)

    async def read(self, name: str) -> Issue:
        """Return an issue as it is now."""
        read = await self.rig.tracker.fetch_by_ids([IssueId(name)])
        (issue,) = read.issues
        return issue

    async def finish(self, name: str) -> None:
        """Move an issue to a terminal state, as a person does."""
        await self.rig.tracker.transition(await self.read(name), "Done")

    async def said(self, name: str) -> list[str]:
        """Return the first two words of each comment on an issue."""
        comments = (await self.read(name)).comments
        return [" ".join(comment.body.split()[:2]) for comment in comments]


Open = Callable[[Path], AbstractAsyncContextManager[TrackerWorld]]


def _context(adapter: TrackerAdapter, block: Any, directory: Path, keys: Any) -> Any:
    return context_of(adapter, block, directory, **keys)


@asynccontextmanager
async def _gitlab(directory: Path) -> AsyncIterator[TrackerWorld]:
    with gitlab_server() as (service, server):
        keys = {"endpoint": server.url, "project": "acme/web", "api_key": GITLAB_TOKEN}
        context = _context(GITLAB, {}, directory, keys)
        async with GITLAB.open(context) as tracker:
            yield TrackerWorld(
                rig=gitlab.GitLabRig(service, server, tracker, "web", ""),
                server=server,
                keys={"kind": "gitlab", **keys},
                hide=lambda hidden: setattr(service, "seen", not hidden),
            )


@asynccontextmanager
async def _github(directory: Path) -> AsyncIterator[TrackerWorld]:
    with github.github() as (service, server):
        keys = github.keys_of(server)
        context = _context(GITHUB, github.QUICK, directory, keys)
        async with GITHUB.open(context) as tracker:
            assert isinstance(tracker, GitHubTracker)
            yield TrackerWorld(
                rig=github.GitHubRig(service, server, tracker),
                server=server,
                keys={"kind": "github", **keys},
                hide=lambda hidden: setattr(service, "visible", not hidden),
                block=github.QUICK,
            )


@asynccontextmanager
async def _jira(directory: Path, label_states: tuple[str, ...] = ()) -> AsyncIterator[TrackerWorld]:
    service = jira.service_of_suite(cloud=True, label_states=label_states)
    states = replace(STATES, labels=label_states)
    with serving(service, jira.contract_of(service)) as server:
        keys = {"endpoint": server.url, "project": "PROJ", "api_key": JIRA_TOKEN}
        async with jira.opened(server, directory, states=states) as tracker:
            yield TrackerWorld(
                rig=jira.JiraRig(service, server, tracker, label_states),
                server=server,
                keys={"kind": "jira", **keys},
                hide=lambda hidden: setattr(service, "anonymous", hidden),
                label_states=label_states,
            )


@asynccontextmanager
async def _linear(
    _directory: Path, label_states: tuple[str, ...] = ()
) -> AsyncIterator[TrackerWorld]:
    states = replace(STATES, labels=label_states)
    with linear.linear(label_states=label_states) as (service, server):
        async with linear.opened(server, states=states) as tracker:
            yield TrackerWorld(
                rig=linear.LinearRig(service, server, tracker, label_states),
                server=server,
                keys={"kind": "linear", **linear.keys_of(server)},
                hide=lambda hidden: setattr(service, "dead", hidden),
                label_states=label_states,
            )


WORLDS: Mapping[str, Open] = {
    "github": _github,
    "gitlab": _gitlab,
    "jira": _jira,
    "linear": _linear,
    "jira-labels": partial(_jira, label_states=jira.LABEL_STATES),
    "linear-labels": partial(_linear, label_states=linear.LABEL_STATES),
}
