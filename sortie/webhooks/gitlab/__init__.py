"""GitLab, with a signing token or the secret token that older servers send.

A signed delivery has an id and a time under its signature. A secret token stands in a header as it
is: it shows who sends, and nothing of what is sent.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping

from msgspec import Struct
from msgspec.json import Decoder

from sortie.model.webhooks import Mention, Part
from sortie.webhooks import NotAuthentic, WebhookAdapter, WebhookDelivery
from sortie.webhooks.payloads import branch_of, names, numbers, path_of, places_of, told_of
from sortie.webhooks.signatures import digest, require_recent, require_same

_SIGNATURE, _TOKEN = "webhook-signature", "x-gitlab-token"
_ID, _TIME = "webhook-id", "webhook-timestamp"
_ENCODED = "whsec_"
"""How a signing token begins that is a key in base 64."""

_MOST_SIGNATURES = 10
_SECONDS = re.compile(r"[0-9]{1,12}", re.ASCII)


def _verify(delivery: WebhookDelivery, secret: str) -> None:
    headers = delivery.headers
    if _SIGNATURE not in headers:
        require_same(headers.get(_TOKEN, ""), secret)
        return
    name, time = headers.get(_ID, ""), headers.get(_TIME, "")
    if _SECONDS.fullmatch(time) is None:
        raise NotAuthentic("the time is no number")
    signed = f"{name}.{time}.".encode("utf-8", "replace")
    given = headers[_SIGNATURE].split(" ")[:_MOST_SIGNATURES]
    expected = [
        b"v1," + base64.b64encode(digest(key, signed, delivery.body)) for key in _keys(secret)
    ]
    pairs = [(one.encode("utf-8", "replace"), other) for one in given for other in expected]
    if not any([hmac.compare_digest(*pair) for pair in pairs]):  # noqa: C419  each is compared
        raise NotAuthentic("no signature is that of the secret")
    require_recent(float(time), delivery)


def _keys(secret: str) -> list[bytes]:
    """Return the keys that a secret may stand for: the text itself, and what it encodes."""
    keys = [secret.encode()]
    if secret.startswith(_ENCODED):
        try:
            keys.append(base64.b64decode(secret.removeprefix(_ENCODED), validate=True))
        except (binascii.Error, ValueError):
            pass
    return keys


def _id(delivery: WebhookDelivery) -> str:
    known = (_ID, "idempotency-key", "x-gitlab-event-uuid")
    return next((delivery.headers[name] for name in known if delivery.headers.get(name)), "")


class _HookedProject(Struct):
    id: int | None = None
    path_with_namespace: str | None = None
    web_url: str | None = None


class _LastCommit(Struct):
    id: str | None = None


class _ObjectAttributes(Struct):
    """The issue, note, merge request or pipeline that a delivery is about."""

    iid: int | None = None
    action: str | None = None
    sha: str | None = None
    ref: str | None = None
    source_branch: str | None = None
    last_commit: _LastCommit | None = None


class _ByIid(Struct):
    iid: int | None = None
    source_branch: str | None = None


class _GitLabPayload(Struct):
    object_kind: str | None = None
    project: _HookedProject | None = None
    object_attributes: _ObjectAttributes | None = None
    issue: _ByIid | None = None
    merge_request: _ByIid | None = None
    ref: str | None = None
    sha: str | None = None


_PAYLOADS = Decoder(_GitLabPayload)
_ISSUES = frozenset({"issue", "work_item"})
_REFERENCES = frozenset({"push"})
_CHECKS = frozenset({"pipeline", "build"})
_APPROVALS = frozenset({"approval", "approved", "unapproval", "unapproved"})
_PARTS: Mapping[str | None, Part] = {"note": "talk", "pipeline": "checks", "build": "checks"}


def _mention(delivery: WebhookDelivery) -> Mention | None:
    told = _PAYLOADS.decode(delivery.body)
    project, kind = told.project or _HookedProject(), told.object_kind
    places = places_of(project.path_with_namespace, path_of(project.web_url), project.id)
    about = told.object_attributes or _ObjectAttributes()
    issue, request = told.issue or _ByIid(), told.merge_request or _ByIid()
    iids = [issue.iid, about.iid if kind in _ISSUES else None]
    branches, commits = [request.source_branch], list[str | None]()
    if kind == "merge_request":
        branches.append(about.source_branch)
        commits.append(None if about.last_commit is None else about.last_commit.id)
    elif kind in _REFERENCES:
        branches.append(branch_of(told.ref))
    elif kind in _CHECKS:
        branches += [about.ref, told.ref]
        commits += [about.sha, told.sha]
    found = Mention(
        places=places,
        issues=names(f"{project.id}:{iid}" for iid in iids if iid and project.id),
        numbers=numbers([request.iid, about.iid if kind == "merge_request" else None]),
        branches=names(branches),
        commits=names(commits),
    )
    is_approval = kind == "merge_request" and about.action in _APPROVALS
    return told_of(found, "talk" if is_approval else _PARTS.get(kind, "all"))


ADAPTER = WebhookAdapter(
    kind="gitlab",
    signed_by=(_SIGNATURE, _TOKEN),
    verify=_verify,
    id_of=_id,
    mention=_mention,
)
