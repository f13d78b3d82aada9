"""The settings of ``trust``: whose words reach an agent, and how."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Annotated, Literal

from sortie.config.authors import TrackerAuthors
from sortie.config.block import Block
from sortie.config.report import Finding
from sortie.config.values import Line, choice
from sortie.model.trust import TRUST_LABEL, Right


class TrustSettings(Block):
    """Whose issues and comments count, and what stands for those of others.

    ``comments`` is ``authors`` where it is None. ``agent_files`` says whose files steer an agent in
    a repository: those of the base, or those that lie in its workspace. With ``fences``
    texts of strangers are cleaned, and stand in a fence.
    """

    authors: TrackerAuthors = "anyone"
    comments: TrackerAuthors | None = None
    label: Line = TRUST_LABEL
    agent_files: Annotated[Literal["base", "branch"], choice("base", "branch")] = "base"
    fences: bool = True
    on_untrusted: Annotated[Literal["hold", "omit"], choice("hold", "omit")] = "hold"

    @property
    def of_comments(self) -> str | tuple[str, ...]:
        """Whose comments count."""
        return self.authors if self.comments is None else self.comments

    @property
    def asks(self) -> bool:
        """Whether it makes a difference who has written something."""
        return self.authors != "anyone" or self.of_comments != "anyone"


def files_findings(trust: TrustSettings, *, has_repository: bool) -> Iterator[Finding]:
    """Yield a warning where files of a base are asked for and there is none."""
    if "agent_files" in trust.model_fields_set and not has_repository:
        yield Finding(
            path=("trust", "agent_files"),
            message="means nothing without repository.url: a workspace has no base then",
            severity="warning",
        )


def trust_findings(trust: TrustSettings, kind: str, rights: Collection[Right]) -> Iterator[Finding]:
    """Yield the rights that the tracker of this kind can never tell of."""
    for key in ("authors", "comments"):
        asked = getattr(trust, key)
        if asked in tuple(Right) and asked not in rights:
            instead = ", ".join([*sorted(rights), "a list of names"])
            message = f'"{asked}" cannot be told by the {kind} tracker; use {instead} or anyone'
            yield Finding(path=("trust", key), message=message, because=("tracker", "kind"))
