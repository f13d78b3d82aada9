"""A group of GitLab and its projects in memory, and what people do there."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.trackers.server.people import Crowd

Json = Any

TOKEN = "glpat-7c0ffee-5ecre7"
API = "/api/v4"


def text_of(time: datetime) -> str:
    """Return a time as GitLab writes it."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Project:
    """A project of the group."""

    id: int
    path: str
    issues: dict[int, dict[str, Json]] = field(default_factory=dict)
    notes: dict[int, list[dict[str, Json]]] = field(default_factory=dict)
    links: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)
    labels: list[str] = field(default_factory=list)
    archived: bool = False
    issues_enabled: bool = True
    visibility: str | None = None
    issues_access_level: str = "enabled"


@dataclass
class GitLabWorld:
    """The group ``acme`` and its projects.

    ``seen``: whether the token sees anything; without it GitLab finds nothing, and knows nobody.
    ``may_write``: whether changes of labels are made, or dropped without a word. ``retry_after``
    answers 429 to everything. ``budget`` is what is left of 2,000 requests, None without limits.
    ``locks`` is how many changes meet one that is under way. ``origin`` stands in addresses of
    next pages, where GitLab is known by another name than the one it was asked by.
    """

    enterprise: bool = True
    licensed: bool = True
    seen: bool = True
    token: str = TOKEN
    scopes: tuple[str, ...] = ("api",)
    expires_at: str | None = "2027-06-30"
    may_write: bool = True
    role: int = 30
    crowd: Crowd = field(default_factory=Crowd)
    down: bool = False
    retry_after: int | None = None
    plain_429: bool = True
    budget: int | None = None
    locks: int = 0
    origin: str | None = None
    prefix: str = ""
    per_page_at_most: int = 100
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    projects: dict[int, Project] = field(default_factory=dict)
    mentioned: list[str] = field(default_factory=list)
    orders: list[str] = field(default_factory=list)
    numbers: int = 1000

    def __post_init__(self) -> None:
        self.add_project("acme/web")

    # What people do.

    @property
    def web(self) -> Project:
        """The project ``acme/web``."""
        return next(p for p in self.projects.values() if p.path == "acme/web")

    def add_project(self, path: str) -> Project:
        """Add a project with an empty list of issues."""
        project = Project(id=40 + len(self.projects), path=path)
        self.projects[project.id] = project
        return project

    def put(
        self, iid: int | None = None, *, project: Project | None = None, **fields: Json
    ) -> dict[str, Json]:
        """Add an issue or change it, as a person would, and return it."""
        place = project or self.web
        iid = iid or max(place.issues, default=0) + 1
        known = place.issues.get(iid) or self._fresh(place, iid)
        item = {**known, "updated_at": text_of(self.clock()), **fields}
        item["closed_at"] = item["updated_at"] if item["state"] == "closed" else None
        place.issues[iid] = item
        place.notes.setdefault(iid, [])
        place.links.setdefault(iid, [])
        self._make_labels(place, item["labels"])
        return item

    def note(
        self, iid: int, body: str, *, project: Project | None = None, **fields: Json
    ) -> dict[str, Json]:
        """Add a note."""
        place = project or self.web
        self.numbers += 1
        now = text_of(self.clock())
        note = {
            "id": self.numbers,
            "type": None,
            "body": body,
            "author": user("ann"),
            "created_at": now,
            "updated_at": now,
            "system": False,
            "noteable_id": place.issues[iid]["id"],
            "noteable_type": "Issue",
            "project_id": place.id,
            "resolvable": False,
            "confidential": False,
            "internal": False,
            "imported": False,
            "imported_from": "none",
            "noteable_iid": iid,
            "commands_changes": {},
            **fields,
        }
        place.notes[iid].append(note)
        if not note["system"]:
            place.issues[iid]["user_notes_count"] += 1
        place.issues[iid]["updated_at"] = now
        return note

    def link(
        self, source: int, kind: str, target: int, target_project: Project | None = None
    ) -> None:
        """Link an issue to another: ``blocks``, ``is_blocked_by`` or ``relates_to``, as seen from
        the first. No issue's ``updated_at`` changes."""
        other = target_project or self.web
        opposite = {"blocks": "is_blocked_by", "is_blocked_by": "blocks"}.get(kind, kind)
        self.web.links[source].append((kind, other.id, target))
        other.links.setdefault(target, []).append((opposite, self.web.id, source))

    def lose(self, iid: int, *, project: Project | None = None) -> None:
        """Delete an issue."""
        place = project or self.web
        del place.issues[iid]

    def move(self, iid: int, target: Project) -> dict[str, Json]:
        """Move an issue to another project, where it gets another number."""
        old = self.web.issues[iid]
        fresh = self.put(project=target, title=old["title"], labels=old["labels"])
        self.put(iid, state="closed", moved_to_id=fresh["id"])
        return fresh

    def rename_label(self, before: str, after: str) -> None:
        """Rename a label everywhere. No issue's ``updated_at`` changes."""
        for place in self.projects.values():
            place.labels = [after if name == before else name for name in place.labels]
            for item in place.issues.values():
                item["labels"] = [after if name == before else name for name in item["labels"]]

    def comments(self, iid: int) -> list[str]:
        """Return the bodies of what is no note of GitLab's own."""
        return [note["body"] for note in self.web.notes[iid] if not note["system"]]

    def _fresh(self, place: Project, iid: int) -> dict[str, Json]:
        self.numbers += 1
        now = text_of(self.clock())
        return {
            "id": self.numbers,
            "iid": iid,
            "project_id": place.id,
            "title": f"Title of {iid}",
            "description": None,
            "state": "opened",
            "created_at": now,
            "updated_at": now,
            "closed_at": None,
            "closed_by": None,
            "labels": [],
            "milestone": None,
            "assignees": [],
            "author": user("ann"),
            "type": "ISSUE",
            "assignee": None,
            "user_notes_count": 0,
            "merge_requests_count": 0,
            "upvotes": 0,
            "downvotes": 0,
            "due_date": None,
            "confidential": False,
            "discussion_locked": None,
            "issue_type": "issue",
            "web_url": f"https://gitlab.example.org/{place.path}/-/issues/{iid}",
            "blocking_issues_count": 0,
            "references": {
                "short": f"#{iid}",
                "relative": f"#{iid}",
                "full": f"{place.path}#{iid}",
            },
            "severity": "UNKNOWN",
            "moved_to_id": None,
            "imported": False,
            "imported_from": "none",
            "epic": None,
        }

    def _make_labels(self, place: Project, names: Iterable[str]) -> None:
        place.labels += [name for name in names if name not in place.labels]


def user(name: str) -> Json:
    return {"id": 7 if name == "sortie" else 8, "username": name, "name": name.title()}
