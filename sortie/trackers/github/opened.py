"""A GitHub tracker made from its settings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec.structs import replace

from sortie.model import TrackerError, TrackerErrorKind, state_key
from sortie.trackers import TrackerContext
from sortie.trackers.github.app_credential import AppCredential
from sortie.trackers.github.items import Repository
from sortie.trackers.github.provider import PROVIDER
from sortie.trackers.github.settings import GitHubSettings
from sortie.trackers.github.tracker import GitHubOptions, GitHubTracker
from sortie.trackers.http.client import open_client
from sortie.trackers.http.credentials import Credential, bearer


@asynccontextmanager
async def opened(context: TrackerContext) -> AsyncIterator[GitHubTracker]:
    """Hold the client open. Raises TrackerError (INVALID) where the settings cannot be used."""
    settings, project = context.settings, context.project or ""
    assert isinstance(settings, GitHubSettings)
    owner, slash, name = project.partition("/")
    if not (owner and slash and name) or context.endpoint is None or not context.api_key:
        what = "tracker.project needs OWNER/REPOSITORY, and tracker.api_key a token"
        raise TrackerError(TrackerErrorKind.INVALID, what)
    priorities = {state_key(k): v for k, v in settings.priority_labels.items()}
    repository = Repository(owner=owner, name=name, priorities=priorities)
    options = GitHubOptions(
        unlabeled=settings.unlabeled_state,
        not_planned=settings.not_planned_states,
        sweep=settings.sweep_interval,
    )
    credential = _credential(settings, context.api_key, repository)
    provider = replace(PROVIDER, change_gap=settings.change_gap)
    async with open_client(provider, context.endpoint, credential, context.progress) as client:
        if isinstance(credential, AppCredential):
            credential.client = client
        yield GitHubTracker(client, repository, context.states, options, context.query_filter)


def _credential(settings: GitHubSettings, key: str, repository: Repository) -> Credential:
    if settings.app_id is None:
        return bearer(key.strip())
    return AppCredential(settings.app_id, key, settings.installation_id, repository.full_name)
