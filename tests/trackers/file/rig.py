"""The file tracker for the suite of trackers: as a directory of Markdown files and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from sortie.model import Issue
from sortie.testing.tracker import OPTIONAL_FIELDS, OpenRig, Rig, context_of
from sortie.trackers import Tracker
from sortie.trackers.file import ADAPTER


class MarkdownRig:
    """A directory of issues."""

    capabilities = ADAPTER.capabilities
    keeps = OPTIONAL_FIELDS

    def __init__(self, path: Path, tracker: Tracker) -> None:
        self._path = path
        self.tracker = tracker

    def put(self, issue: Issue) -> None:
        fields = _fields(issue)
        body = fields.pop("description")
        front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in fields.items())
        self._file(issue.id).write_text(f"---\n{front}---\n{body}", encoding="utf-8")

    def lose(self, issue_id: str) -> None:
        self._file(issue_id).unlink()

    def spoil(self, issue_id: str) -> None:
        self._file(issue_id).write_text("---\nstate: [\n---\n", encoding="utf-8")

    def fail(self) -> None:
        self._path.rename(self._path.with_name("elsewhere"))

    def recover(self) -> None:
        self._path.with_name("elsewhere").rename(self._path)

    def limit(self, seconds: int) -> None:
        raise NotImplementedError

    def _file(self, issue_id: str) -> Path:
        plain = re.fullmatch("[A-Za-z0-9][A-Za-z0-9-]*", issue_id)
        return self._path / f"{issue_id if plain else issue_id.encode().hex()}.md"


class JsonRig:
    """A list of issues in one file."""

    capabilities = ADAPTER.capabilities
    keeps = OPTIONAL_FIELDS

    def __init__(self, path: Path, tracker: Tracker) -> None:
        self._path = path
        self.tracker = tracker

    def put(self, issue: Issue) -> None:
        self._store(issue.id, _fields(issue))

    def lose(self, issue_id: str) -> None:
        self._store(issue_id, None)

    def spoil(self, issue_id: str) -> None:
        self._store(issue_id, {"id": issue_id, "state": 7})

    def fail(self) -> None:
        self._path.write_text(self._path.read_text("utf-8") + "]", encoding="utf-8")

    def recover(self) -> None:
        self._path.write_text(self._path.read_text("utf-8")[:-1], encoding="utf-8")

    def limit(self, seconds: int) -> None:
        raise NotImplementedError

    def _store(self, issue_id: str, fields: Mapping[str, object] | None) -> None:
        listed = {item["id"]: item for item in json.loads(self._path.read_text("utf-8"))}
        listed.pop(issue_id, None)
        items = [*listed.values(), *([fields] if fields is not None else [])]
        self._path.write_text(json.dumps(items), encoding="utf-8")


@asynccontextmanager
async def _markdown(directory: Path) -> AsyncIterator[Rig]:
    path = directory / "issues"
    path.mkdir()
    async with ADAPTER.open(context_of(ADAPTER, {"path": str(path)}, directory)) as tracker:
        yield MarkdownRig(path, tracker)


@asynccontextmanager
async def _json(directory: Path) -> AsyncIterator[Rig]:
    path = directory / "issues.json"
    path.write_text("[]", encoding="utf-8")
    async with ADAPTER.open(context_of(ADAPTER, {"path": str(path)}, directory)) as tracker:
        yield JsonRig(path, tracker)


RIGS: Mapping[str, OpenRig] = {"directory": _markdown, "json": _json}


def _fields(issue: Issue) -> dict[str, object]:
    return {
        "id": issue.id,
        "identifier": issue.identifier,
        "title": issue.title,
        "state": issue.state,
        "description": issue.description,
        "priority": issue.priority,
        "url": issue.url,
        "labels": list(issue.labels),
        "author": issue.author,
        "assignee": issue.assignee,
        "issue_type": issue.issue_type,
        "branch_name": issue.branch_name,
        "parent": issue.parent,
        "blocked_by": [blocker.identifier for blocker in issue.blocked_by],
        "comments": [
            {
                "author": comment.author,
                "body": comment.body,
                "created_at": comment.created_at and comment.created_at.isoformat(),
            }
            for comment in issue.comments
        ],
        "created_at": issue.created_at and issue.created_at.isoformat(),
        "updated_at": issue.updated_at and issue.updated_at.isoformat(),
    }
