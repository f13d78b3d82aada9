"""The ``gitea`` block, and what can be wrong with settings without asking Gitea."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, StrictBool

from sortie.config.report import Finding
from sortie.config.settings import TrackerSettings
from sortie.config.values import Frozen, Limits, State
from sortie.trackers.endpoints import endpoint_findings, named_states

_PROJECT = re.compile(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+")
_LABEL_LIMIT = 50
"""Characters of a label that Gitea takes."""


class GiteaSettings(BaseModel):
    """The ``gitea`` block."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    unlabeled_state: State | None = None
    priority_labels: Limits = Frozen()
    blockers: StrictBool = True


def findings(tracker: TrackerSettings, block: GiteaSettings) -> Iterator[Finding]:
    """Yield what is wrong with the settings of ``tracker`` and the block."""
    if tracker.endpoint is not None:
        yield from endpoint_findings(tracker.endpoint, "https://codeberg.org")
    if tracker.project is not None and not _PROJECT.fullmatch(tracker.project):
        message = f'"{tracker.project}" is no OWNER/REPOSITORY'
        yield Finding(path=("tracker", "project"), message=message)
    for path, name in named_states(tracker):
        if len(name) > _LABEL_LIMIT:
            message = f'"{name}" can be no label: it has more than {_LABEL_LIMIT} characters'
            yield Finding(path=path, message=message)
    if block.unlabeled_state is not None and not any(
        block.unlabeled_state.casefold() == name.casefold() for _, name in named_states(tracker)
    ):
        message = "is named by no other setting, so that no issue without a label is worked on"
        yield Finding(path=("gitea", "unlabeled_state"), message=message, severity="warning")
