"""What somebody may do in a repository or project, as GitHub, Gitea and GitLab tell it.

Trackers and forges ask alike. All raise TrackerError; PERMISSION where the account of the token may
not ask.
"""

from __future__ import annotations

from sortie.http.answers import HttpAnswer
from sortie.http.client import HttpClient, segment
from sortie.http.json_values import list_of, mapping_of, number_of, word_of
from sortie.http.requests import HttpRequest, Params, error_text_in_json
from sortie.model import TrackerErrorKind
from sortie.model.trust import login_key

DEVELOPER, GUEST = 30, 10
"""Levels of access at GitLab: from the first on a member may push, below the second nobody is one
of the project."""

_MAY_WRITE = frozenset({"write", "maintain", "admin", "owner"})
_UNTOLD = frozenset({403, 404})


async def may_push(client: HttpClient, root: str, user: str) -> bool:
    """Tell whether somebody may push to the repository below ``root``, by their own right or a
    team's; GitHub and Gitea have the same address for it."""
    answer = await _asked(client, f"{root}/collaborators/{segment(user)}/permission", user)
    told = mapping_of(answer.json()) if answer.ok else {}
    return word_of(told.get("permission")) in _MAY_WRITE


async def is_collaborator(client: HttpClient, root: str, user: str) -> bool:
    """Tell whether somebody belongs to the repository, also by a team or the organisation."""
    return (await _asked(client, f"{root}/collaborators/{segment(user)}", user)).ok


async def is_member(client: HttpClient, organisation: str, user: str) -> bool:
    """Tell whether somebody belongs to an organisation."""
    path = f"/orgs/{segment(organisation)}/members/{segment(user)}"
    return (await _asked(client, path, user)).ok


async def access_level(client: HttpClient, root: str, user: str) -> int:
    """Return the level of a member of the project or group below ``root`` at GitLab, or of a group
    above it; 0 for anybody else."""
    what = f"cannot see what {user} may do"
    path = f"{root}/members/all"
    params: Params = [("query", user), ("per_page", 100)]
    request = HttpRequest(path=path, what=what, params=params, list_at=())
    found = map(mapping_of, list_of((await client.ask(request)).json()))
    theirs = (one for one in found if login_key(word_of(one.get("username"))) == login_key(user))
    active = (one for one in theirs if one.get("state") in (None, "active"))
    return max((number_of(one.get("access_level")) or 0 for one in active), default=0)


async def _asked(client: HttpClient, path: str, user: str) -> HttpAnswer:
    what = f"cannot see what {user} may do"
    request = HttpRequest(path=path, what=what, wanted=_UNTOLD)
    answer = await client.ask(request)
    if answer.status == 403:
        told = "the account of the token may not ask that, and on Gitea has to administer the"
        told = f"{error_text_in_json(answer)}: {told} repository for it"
        raise client.error(TrackerErrorKind.PERMISSION, request, told)
    return answer
