"""Which kind of forge a repository is on, and what is wrong with its settings; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sortie.config.endpoints import address_findings
from sortie.config.messages import misspelt
from sortie.config.reactions import ReactionsSettings
from sortie.config.report import Finding
from sortie.config.repository import ForgeSettings, RepositorySettings, VerifySettings
from sortie.config.settings import Settings, TrackerSettings
from sortie.documents import Path
from sortie.model import same_state
from sortie.model.addresses import is_loopback
from sortie.model.git_urls import GitUrl, parse_git_url

NO_FORGE = "none"
AUTO = "auto"
KINDS = ("github", "gitlab", "gitea")

_HOSTS = {
    "github.com": "github",
    "ssh.github.com": "github",
    "gitlab.com": "gitlab",
    "codeberg.org": "gitea",
    "gitea.com": "gitea",
}

_URL: Path = ("repository", "url")
_KIND: Path = ("forge", "kind")
_ENDPOINT: Path = ("forge", "endpoint")
_CREDENTIAL: Path = ("repository", "credential")


def forge_kind(settings: Settings) -> str:
    """Return the kind of forge of settings that were checked; NO_FORGE for none."""
    return kind_of_forge(settings.repository, settings.forge, settings.tracker) or NO_FORGE


def kind_of_forge(
    repository: RepositorySettings, forge: ForgeSettings, tracker: TrackerSettings | None
) -> str | None:
    """Return the kind, None where neither the settings nor the address tell it."""
    if forge.kind != AUTO:
        return forge.kind
    if repository.url is None:
        return NO_FORGE
    url = parse_git_url(repository.url)
    if url.scheme == "file":
        return NO_FORGE
    if (known := _HOSTS.get(url.host.casefold())) is not None:
        return known
    is_trackers = repository.credential == "tracker" and tracker is not None
    return tracker.kind if is_trackers and tracker and tracker.kind in KINDS else None


def repository_findings(parts: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what is wrong with ``repository``, ``verify`` and ``forge`` together."""
    repository: RepositorySettings = parts["repository"]
    verify: VerifySettings = parts["verify"]
    forge: ForgeSettings = parts["forge"]
    tracker: TrackerSettings | None = parts["tracker"]
    yield from _about_reactions(parts["reactions"], repository, forge, tracker)
    if repository.url is None:
        yield from _without_url(repository, verify, forge)
        return
    url = parse_git_url(repository.url)
    if repository.credential is not None and url.scheme == "http" and not is_loopback(url.host):
        message = "has no https, so that anybody on the way can read the credential"
        yield Finding(path=_URL, message=message, severity="warning")
    if "issue." not in repository.branch:
        message = "would be the same for all issues; use {{ issue.identifier }}"
        yield Finding(path=("repository", "branch"), message=message)
    if repository.credential == "tracker" and (tracker is None or tracker.api_key is None):
        message = "takes the key of the tracker, and tracker.api_key is not set"
        yield Finding(path=_CREDENTIAL, message=message, needs=(("tracker", "api_key"),))
    yield from _about_endpoint(repository, forge, url)
    yield from _about_kind(repository, forge, tracker)
    yield from _about_no_change(repository, tracker)


def _without_url(
    repository: RepositorySettings, verify: VerifySettings, forge: ForgeSettings
) -> Iterator[Finding]:
    for name, block in (("repository", repository), ("verify", verify), ("forge", forge)):
        if block != type(block)():
            message = "means nothing without repository.url"
            yield Finding(path=(name,), message=message, severity="warning", needs=(_URL,))


def _about_kind(
    repository: RepositorySettings, forge: ForgeSettings, tracker: TrackerSettings | None
) -> Iterator[Finding]:
    kind = kind_of_forge(repository, forge, tracker)
    if kind is None:
        message = "cannot be told from repository.url; needs github, gitlab, gitea or none"
        yield Finding(path=_KIND, message=message, needs=(_URL,))
    elif kind not in (*KINDS, NO_FORGE):
        message = f"needs auto, github, gitlab, gitea or none, not {kind}"
        yield Finding(path=_KIND, message=message)
    elif kind != NO_FORGE and repository.credential is None:
        message = (
            f"is needed to open pull requests at {kind}: set it to a reference such as "
            "$FORGE_TOKEN, or to tracker; or set forge.kind to none"
        )
        yield Finding(path=_CREDENTIAL, message=message, needs=(_KIND, _URL))


def _about_endpoint(
    repository: RepositorySettings, forge: ForgeSettings, url: GitUrl
) -> Iterator[Finding]:
    if forge.endpoint is not None:
        key = "repository.credential"
        yield from address_findings(_ENDPOINT, forge.endpoint, "https://git.example.org", key)
    elif forge.kind in KINDS and url.scheme == "file" and repository.credential != "tracker":
        message = f"cannot be {forge.kind} here: repository.url names no server"
        yield Finding(path=_KIND, message=message, needs=(_URL,))


def _about_no_change(
    repository: RepositorySettings, tracker: TrackerSettings | None
) -> Iterator[Finding]:
    what, path = repository.no_change, ("repository", "no_change")
    if tracker is None or what == "hold":
        return
    if what == "handoff":
        if tracker.handoff_state is None:
            yield Finding(path=path, message="needs tracker.handoff_state")
    else:
        yield from _about_state(path, what, tracker)


def _about_state(path: Path, state: str, tracker: TrackerSettings) -> Iterator[Finding]:
    """Yield what is wrong with a state to which an issue is moved that is not to run again."""
    if any(same_state(state, active) for active in tracker.active_states):
        message = f'"{state}" is in active_states; the issue would run again'
        yield Finding(path=path, message=message)
        return
    named = [*tracker.active_states, *tracker.terminal_states]
    if tracker.handoff_state is not None:
        named.append(tracker.handoff_state)
    near = misspelt(state, named)
    if near is not None and not any(same_state(state, known) for known in named):
        message = f'is no state of the tracker\'s settings; did you mean "{near}"?'
        yield Finding(path=path, message=message, severity="warning")


def _about_reactions(
    reactions: ReactionsSettings,
    repository: RepositorySettings,
    forge: ForgeSettings,
    tracker: TrackerSettings | None,
) -> Iterator[Finding]:
    path: Path = ("reactions",)
    if not reactions.on:
        return
    if kind_of_forge(repository, forge, tracker) == NO_FORGE:
        message = "means nothing without pull requests: set repository.url and forge.kind"
        yield Finding(path=path, message=message, severity="warning", needs=(_URL, _KIND))
    if tracker is None:
        return
    if tracker.handoff_state is None:
        message = "needs tracker.handoff_state: a pull request is watched while its issue is there"
        yield Finding(path=path, message=message, needs=(("tracker", "handoff_state"),))
    for name, block in (("merged", reactions.merged), ("closed", reactions.closed)):
        if block is not None:
            yield from _about_state((*path, name, "state"), block.state, tracker)
