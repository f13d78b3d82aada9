"""Find the workflow that has an issue, where a command is pointed at several."""

from __future__ import annotations

from urllib.parse import quote

from sortie.cli.arguments import Source
from sortie.cli.parameters import WrongUsage
from sortie.model import SortieError


def workflow_with(source: Source, issue: str) -> Source:
    """Return the files of the workflow whose daemon or history has an issue.

    Raises WrongUsage where several have it, and SortieError where none has.
    """
    every = source.each()
    if "" in every:
        return every[""]
    found = {name: one for name, one in every.items() if _has(one, issue)}
    if len(found) > 1:
        raise WrongUsage(
            f"{issue} is in the workflows {', '.join(found)}; choose one", parameter="--workflow"
        )
    if not found:
        raise SortieError(f"none of the workflows {', '.join(every)} has {issue}")
    return next(iter(found.values()))


def issue_path(issue: str) -> str:
    """Return the path of an issue below ``/api/v1/``."""
    return f"issues/{quote(issue, safe='', errors='surrogateescape')}"


def _has(source: Source, issue: str) -> bool:
    from sortie.cli.client import ask
    from sortie.cli.discovery import NoDaemon, locate
    from sortie.store.readonly import is_there, read_history

    place = locate(source)
    try:
        answer = ask(place, place.daemon(), "GET", f"/api/v1/{issue_path(issue)}/explain")
        if answer.status == 200:
            return True
    except NoDaemon:
        pass
    return is_there(place.database) and bool(read_history(place.database, issue=issue, limit=1))
