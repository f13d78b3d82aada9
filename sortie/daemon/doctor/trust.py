"""Who may steer the agent now: what ``trust`` says, and whether strangers can write issues."""

from __future__ import annotations

from collections.abc import Callable, Collection

import trio

from sortie.config.settings import Settings
from sortie.config.trust import TrustSettings
from sortie.model.checks import Check, CheckResult, passed, warned
from sortie.model.trust import Right

_EVERYBODY = "anyone"
_WHO = {
    _EVERYBODY: "everybody",
    Right.WRITE: "those who may write to the project",
    Right.MEMBERS: "members of the project",
}


def trust_check(
    settings: Settings, rights: Collection[Right], is_public: Callable[[], bool | None]
) -> Check:
    """Return the check; it asks the tracker nothing, but looks at what earlier checks were told."""

    async def ask() -> CheckResult:
        await trio.lowlevel.checkpoint()
        return about_trust(settings.trust, rights, public=is_public())

    return Check(name="trust", ask=ask)


def about_trust(
    trust: TrustSettings, rights: Collection[Right], *, public: bool | None
) -> CheckResult:
    """Say whose issues and comments reach the agent; everybody's in public is a warning."""
    said = f"{_issues(trust)}, {_comments(trust)}"
    if public and _EVERYBODY in (trust.authors, trust.of_comments):
        key = "authors" if trust.authors == _EVERYBODY else "comments"
        word = next((right for right in Right if right in rights), "a list of names")
        return warned(
            f"strangers may steer the agent: the project is public; {said}",
            f"set trust.{key}: {word}, or see that nobody else can write there",
        )
    seen = {True: "; the project is public", False: "; the project is not public", None: ""}
    return passed(said + seen[public])


def _issues(trust: TrustSettings) -> str:
    who = _names(trust.authors)
    if trust.authors == _EVERYBODY:
        return f"issues of {who} are started (trust.authors)"
    return f"issues of {who} are started, and those to which they give the label {trust.label}"


def _comments(trust: TrustSettings) -> str:
    if trust.of_comments == trust.authors:
        return "and their comments count" if trust.authors != _EVERYBODY else "and comments count"
    return f"and comments of {_names(trust.of_comments)} count"


def _names(who: str | tuple[str, ...]) -> str:
    return _WHO[who] if isinstance(who, str) else ", ".join(who) or "nobody"
