"""Gitea and Forgejo."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.json import Decoder

from sortie.model.webhooks import Mention, Part
from sortie.webhooks import WebhookAdapter, WebhookDelivery
from sortie.webhooks.payloads import HookedRepository, branch_of, names, numbers, told_of
from sortie.webhooks.signatures import require_hex_digest

_SIGNATURE = "x-gitea-signature"


class _GiteaRequest(Struct):
    number: int | None = None


class _GiteaPresence(Struct):
    """An object of which only that it is there is asked for."""


class _GiteaIssueOrRequest(Struct):
    number: int | None = None
    pull_request: _GiteaPresence | None = None


class _GiteaWorkflow(Struct):
    head_sha: str | None = None
    head_branch: str | None = None


class _GiteaPayload(Struct):
    repository: HookedRepository | None = None
    issue: _GiteaIssueOrRequest | None = None
    is_pull: bool = False
    pull_request: _GiteaRequest | None = None
    workflow_run: _GiteaWorkflow | None = None
    workflow_job: _GiteaWorkflow | None = None
    sha: str | None = None
    ref: str | None = None


_PAYLOADS = Decoder(_GiteaPayload)
_PARTS: Mapping[str, Part] = {
    "issue_comment": "talk",
    "pull_request_approved": "talk",
    "pull_request_rejected": "talk",
    "pull_request_comment": "talk",
    "status": "checks",
    "workflow_run": "checks",
    "workflow_job": "checks",
}


def _mention(delivery: WebhookDelivery) -> Mention | None:
    told = _PAYLOADS.decode(delivery.body)
    places = told.repository.places if told.repository is not None else ()
    issue, request = told.issue, told.pull_request
    is_request = told.is_pull or (issue is not None and issue.pull_request is not None)
    runs = [run for run in (told.workflow_run, told.workflow_job) if run is not None]
    found = Mention(
        places=places,
        issues=names([issue.number]) if issue is not None and not is_request else (),
        numbers=numbers(
            [
                issue.number if issue is not None and is_request else None,
                request.number if request is not None else None,
            ]
        ),
        branches=names([branch_of(told.ref), *(run.head_branch for run in runs)]),
        commits=names([told.sha, *(run.head_sha for run in runs)]),
    )
    return told_of(found, _PARTS.get(delivery.headers.get("x-gitea-event", ""), "all"))


ADAPTER = WebhookAdapter(
    kind="gitea",
    signed_by=(_SIGNATURE,),
    verify=lambda delivery, secret: require_hex_digest(delivery, _SIGNATURE, secret),
    id_of=lambda delivery: delivery.headers.get("x-gitea-delivery", ""),
    mention=_mention,
)
