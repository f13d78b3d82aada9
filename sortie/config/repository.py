"""Settings of what is made of an agent's work: a branch, its checks, and a pull request."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
)

from sortie.config.block import Block
from sortie.config.references import Lookup
from sortie.config.values import (
    HostPathText,
    Line,
    Script,
    Secret,
    State,
    choice,
    matching,
    milliseconds,
    whole,
)
from sortie.model.git_urls import parse_git_url

_AUTHOR = r".*[^\s.,:;<>\"\\'].*"
"""Git drops white space and these characters at both ends of a name, and refuses an empty one."""


def _git_address(text: str | None) -> str | None:
    if text is not None:
        parse_git_url(text)
    return text


class RepositorySettings(Block):
    """The git repository that agents work in; without ``url`` there is none.

    ``branch`` and ``message`` are templates. ``no_change`` is ``hold``, ``handoff`` or a state.
    """

    url: Annotated[Line | None, AfterValidator(_git_address), Lookup.WHOLE] = None
    base: Line | None = None
    branch: Line = "sortie/{{ issue.identifier }}"
    credential: Annotated[Literal["tracker"] | Secret | None, Lookup.ONLY_OR_TRACKER] = None
    identity_file: HostPathText | None = None
    submodules: bool = False
    lfs: bool = False
    author_name: Annotated[Line, matching(_AUTHOR, "a name, not only punctuation")] = "Sortie"
    author_email: Line = "sortie@localhost"
    agent_pushes: bool = False
    leftovers: Annotated[Literal["commit", "refuse"], choice("commit", "refuse")] = "commit"
    message: Script = "{{ issue.identifier }}: {{ issue.title }}"
    no_change: State = "hold"


class VerifySettings(Block):
    """Commands that have to succeed before the work of a run is delivered.

    ``where`` they run is a clean clone of the commit, or the workspace. ``rounds`` is how often
    the agent is asked to mend what fails.
    """

    commands: tuple[Script, ...] = ()
    timeout: Annotated[float, milliseconds(1)] = Field(600.0, alias="timeout_ms")
    where: Annotated[Literal["clean", "workspace"], choice("clean", "workspace")] = "clean"
    rounds: Annotated[int, whole(0, 100)] = 3


class ForgeSettings(Block):
    """Where pull requests are opened, and what stands in them; ``title`` and ``body`` are
    templates. ``auto`` takes the kind from ``repository.url``, and ``none`` opens none."""

    kind: Line = "auto"
    endpoint: Annotated[Line | None, Lookup.WHOLE] = None
    title: Line = "{{ issue.identifier }}: {{ issue.title }}"
    body: Script | None = None
    draft: bool = False
    labels: tuple[Line, ...] = ()
    reviewers: tuple[Line, ...] = ()
    assignees: tuple[Line, ...] = ()
