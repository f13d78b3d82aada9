"""Comments and authors as the JSON of GitHub and of Gitea has them; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sortie.http.comments import without_mark
from sortie.http.json_values import mapping_of, required_text, time_of, word_of
from sortie.model import Comment, TrackerError, TrackerErrorKind


def comment_of(data: Any) -> Comment:
    """Return a comment without our mark. Raises TrackerError (INVALID)."""
    told = mapping_of(data)
    author = author_of(told)
    try:
        return Comment(
            author=author or "ghost",
            body=without_mark(required_text(told.get("body") or "", "body")),
            created_at=time_of(told.get("created_at"), "created_at"),
            author_id=author,
        )
    except ValueError as exc:
        what = f"a comment cannot be read: {exc}"
        raise TrackerError(TrackerErrorKind.INVALID, what) from exc


def author_of(told: Mapping[str, Any]) -> str | None:
    """Return the login of the author of an issue or comment, None where it has none."""
    return word_of(mapping_of(told.get("user")).get("login")) or None
