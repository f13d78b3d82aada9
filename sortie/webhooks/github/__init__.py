"""GitHub and GitHub Enterprise Server."""

from __future__ import annotations

from msgspec import Struct
from msgspec.json import Decoder

from sortie.model.webhooks import Mention
from sortie.webhooks import WebhookAdapter, WebhookDelivery
from sortie.webhooks.payloads import HookedRepository, branch_of, names, numbers
from sortie.webhooks.signatures import require_hex_digest

_SIGNATURE = "x-hub-signature-256"


class _NumberedObject(Struct):
    number: int | None = None


class _Presence(Struct):
    """An object of which only that it is there is asked for."""


class _IssueOrRequest(Struct):
    number: int | None = None
    pull_request: _Presence | None = None


class _NamedBranch(Struct):
    name: str | None = None


class _CheckedHead(Struct):
    """A check run, a check suite, a workflow run, or a job of one."""

    head_sha: str | None = None
    head_branch: str | None = None
    pull_requests: list[_NumberedObject] | None = None


class _GitHubPayload(Struct):
    repository: HookedRepository | None = None
    issue: _IssueOrRequest | None = None
    pull_request: _NumberedObject | None = None
    check_run: _CheckedHead | None = None
    check_suite: _CheckedHead | None = None
    workflow_run: _CheckedHead | None = None
    workflow_job: _CheckedHead | None = None
    sha: str | None = None
    branches: list[_NamedBranch] | None = None
    ref: str | None = None


_PAYLOADS = Decoder(_GitHubPayload)
_BY_REFERENCE = frozenset({"push", "create", "delete"})


def _mention(delivery: WebhookDelivery) -> Mention | None:
    event = delivery.headers.get("x-github-event", "")
    told = _PAYLOADS.decode(delivery.body)
    places = told.repository.places if told.repository is not None else ()
    if event == "ping":
        return Mention(places=places, ping=True)
    issue, request = told.issue, told.pull_request
    is_request = issue is not None and issue.pull_request is not None
    checked = [told.check_run, told.check_suite, told.workflow_run, told.workflow_job]
    checks = [one for one in checked if one is not None]
    branches = [one.name for one in told.branches or ()] + [one.head_branch for one in checks]
    if event in _BY_REFERENCE:
        branches.append(branch_of(told.ref))
    found = Mention(
        places=places,
        issues=names([issue.number]) if issue is not None and not is_request else (),
        numbers=numbers(
            [
                issue.number if issue is not None and is_request else None,
                request.number if request is not None else None,
                *(one.number for check in checks for one in check.pull_requests or ()),
            ]
        ),
        branches=names(branches),
        commits=names([told.sha, *(one.head_sha for one in checks)]),
    )
    return found if found != Mention(places=places) else None


ADAPTER = WebhookAdapter(
    kind="github",
    signed_by=(_SIGNATURE,),
    verify=lambda delivery, secret: require_hex_digest(delivery, _SIGNATURE, secret, "sha256="),
    id_of=lambda delivery: delivery.headers.get("x-github-delivery", ""),
    mention=_mention,
)
