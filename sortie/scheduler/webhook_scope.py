"""Which deliveries of webhooks concern a workflow."""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from sortie.config.forge_kinds import forge_kind
from sortie.config.settings import Settings
from sortie.model import PullRequest
from sortie.model.git_urls import parse_git_url
from sortie.model.webhooks import Mention, place_key


class WebhookScope(Struct, frozen=True, kw_only=True):
    """The kinds of the tracker and of the forge, each None unless its deliveries are taken, and
    where both work in compared form; "" is anywhere."""

    tracker: str | None = None
    project: str = ""
    forge: str | None = None
    repository: str = ""

    def has_issues(self, kind: str, mention: Mention) -> bool:
        """Tell whether issues that a delivery names may be those of the tracker."""
        return kind == self.tracker and _fits(self.project, mention)

    def has_pull_requests(self, kind: str, mention: Mention) -> bool:
        """Tell whether pull requests that a delivery names may be those of the forge."""
        return kind == self.forge and _fits(self.repository, mention)


def _fits(place: str, mention: Mention) -> bool:
    """Tell whether a mention is of a place, or of one below it, as a project of a group is."""
    if not place or not mention.places:
        return True
    return any(each == place or each.startswith(f"{place}/") for each in mention.places)


def webhook_scope(settings: Settings) -> WebhookScope:
    """Return which deliveries concern the issues and pull requests of these settings."""
    kinds, tracker, forge = settings.webhooks.secrets, settings.tracker, forge_kind(settings)
    project = place_key(tracker.project or "")
    if "gitlab" in kinds and project.isdecimal():
        project = ""  # the number of a group stands in no delivery
    url = settings.repository.url
    return WebhookScope(
        tracker=tracker.kind if tracker.kind in kinds else None,
        project=project if tracker.kind in kinds else "",
        forge=forge if forge in kinds else None,
        repository=place_key(parse_git_url(url).path) if url is not None and forge in kinds else "",
    )


def repository_of(request: PullRequest) -> str:
    """Return the repository of a pull request in compared form, by its web address."""
    path = urlsplit(request.place).path
    owner_and_name, _, _ = path.rpartition("/")
    return place_key(path.partition("/-/")[0] if "/-/" in path else owner_and_name)
