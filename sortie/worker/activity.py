"""What a run's agent does, gathered from its events: files, tools, the model.

Rule 1: whatever an agent tells, at most ACTIVITY_FILE_COUNT paths of together FILE_CHARACTERS and
ACTIVITY_TOOL_COUNT names are kept, and none of them has a control character.
Rule 2: a file counts as modified where a tool that edits, moves or deletes names it and succeeds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from sortie.model import TEXT_LIMIT, Activity
from sortie.model.texts import NOT_ON_A_LINE

ACTIVITY_FILE_COUNT = 500
FILE_CHARACTERS = 32 * 1024
ACTIVITY_TOOL_COUNT = 100
PATH_LIMIT = 1024
"""Characters of a path; a longer one is left out, since a part of it would be another path."""

ACTIVITY_NAME_LIMIT = 200
OTHER_TOOLS = "(other)"
"""Under this name the uses of all tools are counted that come after ACTIVITY_TOOL_COUNT others."""

EDITING = frozenset({"edit", "delete", "move"})
"""Kinds of tools that modify the files which they are about."""

REPORT_INTERVAL = 5.0
"""Seconds within which changes are reported once; a crash loses no more than that."""


class RunActivity:
    """Gathers for all turns of a run; ``workspace`` is the run's directory, and ``answer_limit``
    how many characters of an answer are kept."""

    def __init__(self, workspace: str, answer_limit: int = TEXT_LIMIT) -> None:
        self.answer_limit = answer_limit
        self._workspace = workspace
        self._known = False
        self._files: dict[str, None] = {}
        self._characters = 0
        self._omitted = False
        self._uses: dict[str, int] = {}
        self._traced_model: str | None = None
        self._model: str | None = None
        self._changed = False
        self._reported_at: float | None = None
        self.answer: str | None = None
        """What the agent said last, in its last turn that said anything."""

    def begin_with(self, known: Activity, answer: str | None) -> None:
        """Go on from what another daemon has gathered."""
        self.answer, self._model = answer, known.model
        self._files = dict.fromkeys(known.files_modified or ())
        self._characters = sum(map(len, self._files))
        self._uses, self._omitted = dict(known.tool_uses or {}), known.files_omitted
        self._known = known.files_modified is not None or known.tool_uses is not None

    @property
    def activity(self) -> Activity:
        """What is known so far."""
        return Activity(
            model=self._traced_model or self._model,
            files_modified=tuple(self._files) if self._known else None,
            files_omitted=self._omitted,
            tool_uses=dict(self._uses) if self._known else None,
        )

    def news(self, now: float) -> Activity | None:
        """Return what is known where it has changed, at most once in REPORT_INTERVAL seconds."""
        if not self._changed or (
            self._reported_at is not None and now - self._reported_at < REPORT_INTERVAL
        ):
            return None
        return self.unreported(now)

    def unreported(self, now: float) -> Activity | None:
        """Return what is known where it has changed since it was returned last."""
        if not self._changed:
            return None
        self._changed, self._reported_at = False, now
        return self.activity

    def traced(self, model: str | None) -> None:
        """Note that all tools of a turn are told, and which model answers, where that is known."""
        model = None if model is None else _clean(model)[:ACTIVITY_NAME_LIMIT]
        if not self._known or (model or self._traced_model) != self._traced_model:
            self._known, self._changed = True, True
            self._traced_model = model or self._traced_model

    def model_seen(self, model: str | None) -> None:
        """Note a model by whose tokens it is, or which answered; a traced one goes before it."""
        name = "" if model is None else _clean(model)[:ACTIVITY_NAME_LIMIT]
        if name and name != self._model:
            self._model = name
            self._changed |= self._traced_model is None

    def used(self, tool: str) -> None:
        """Count a use of a tool."""
        name = _clean(tool)[:ACTIVITY_NAME_LIMIT] or OTHER_TOOLS
        if name not in self._uses and len(self._uses) >= ACTIVITY_TOOL_COUNT:
            name = OTHER_TOOLS
        self._uses[name] = self._uses.get(name, 0) + 1
        self._known = self._changed = True

    def modified(self, kind: str | None, locations: Iterable[str]) -> None:
        """Note the files that a tool of some kind was about, and that it has succeeded."""
        if kind not in EDITING:
            return
        for location in locations:
            self._add(location)

    def _add(self, location: str) -> None:
        path = _clean(self._shown(location))
        if path in self._files or not path:
            return
        full = (
            len(self._files) >= ACTIVITY_FILE_COUNT
            or self._characters + len(path) > FILE_CHARACTERS
        )
        if full or len(path) > PATH_LIMIT:
            self._changed |= not self._omitted
            self._omitted = True
            return
        self._files[path] = None
        self._characters += len(path)
        self._known = self._changed = True

    def _shown(self, location: str) -> str:
        """Return a path as it is kept; by its text alone, as it may be a path of another host."""
        if not location:
            return ""
        path = os.path.normpath(os.path.join(self._workspace, location))
        root = self._workspace.rstrip("/") + "/"
        return path.removeprefix(root)


def _clean(text: str) -> str:
    return NOT_ON_A_LINE.sub("\ufffd", text)
