"""What can be done about a check run of GitHub: read why it failed, have it made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.forges.check_logs import last_lines
from sortie.forges.http_forge import HttpForge
from sortie.http.client import segment
from sortie.http.json_values import mapping_of, number_of, text_of, word_of
from sortie.model.pull_requests import HeadCheck

_ACTIONS = "github-actions"
_MISSING = frozenset({403, 404, 410})
_IMPOSSIBLE = frozenset({403, 404, 422})
_ANNOTATIONS = 50
_MESSAGE_LIMIT = 1000


class GitHubCheckRuns(HttpForge):
    """The check runs of one repository of GitHub."""

    async def check_log(self, check: HeadCheck, lines: int) -> str:
        """Return the annotations, then what the check's own app says or the end of its job's log.

        The id of a check run is that of a job for GitHub Actions alone.
        """
        what = f"cannot read the log of {check.name}"
        run = await self._run(check, what)
        if run is None:
            return ""
        path = f"/check-runs/{check.id}/annotations"
        params = [("per_page", _ANNOTATIONS)]
        answer = self.permitted(await self.ask(path, what, params=params, wanted=_MISSING), what)
        told = [_annotation(item) for item in answer.json()] if answer.ok else []
        if _app(run) == _ACTIONS:
            log = await self.log_at(f"/actions/jobs/{check.id}/logs", what)
            said = last_lines(log, lines)
        else:
            output = mapping_of(run.get("output"))
            texts = (text_of(output.get(key)) or "" for key in ("title", "summary", "text"))
            said = last_lines("\n".join(filter(None, texts)), lines)
        return "\n".join(filter(None, [last_lines("\n".join(told), lines), said]))

    async def rerun(self, check: HeadCheck) -> bool:
        """Have a job of Actions run again, or its app asked to make a check run again."""
        what = f"cannot have {check.name} made again"
        run = await self._run(check, what)
        if run is None:
            return False
        path = f"/check-runs/{check.id}/rerequest"
        if _app(run) == _ACTIONS:
            path = f"/actions/jobs/{check.id}/rerun"
        return (await self.write("POST", path, what, wanted=_IMPOSSIBLE)).ok

    async def _run(self, check: HeadCheck, what: str) -> Mapping[str, Any] | None:
        """Return a check run; None for a status, which has no more than its address."""
        if not check.id.isdecimal():
            return None
        path = f"/check-runs/{segment(check.id)}"
        answer = self.permitted(await self.ask(path, what, wanted=_MISSING), what)
        return mapping_of(answer.json()) if answer.ok else None


def _app(run: Mapping[str, Any]) -> str:
    return word_of(mapping_of(run.get("app")).get("slug"))


def _annotation(item: Any) -> str:
    line = number_of(item.get("start_line"))
    place = f"{word_of(item.get('path'))}:{line}" if line else word_of(item.get("path"))
    message = " ".join((text_of(item.get("message")) or "").split())[:_MESSAGE_LIMIT]
    return f"{place}: {word_of(item.get('annotation_level'))}: {message}"
