"""What deliveries name: issues, pull requests, and where they are."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import DecodeError

from sortie.model.webhooks import MOST_NAMES, Mention, joined
from sortie.webhooks import ADAPTERS, WebhookDelivery
from tests.webhooks.senders import KINDS, NOW, SECRET, delivery, issue_payload, repository, signed

HERE = ("acme/web",)
PROJECT: dict[str, Any] = {
    "id": 42,
    "path_with_namespace": "Acme/Web",
    "web_url": "https://git.example/gitlab/Acme/Web",
}
LAB = ("acme/web", "gitlab/acme/web", "42")


def mention(kind: str, payload: dict[str, Any], event: str = "") -> Mention | None:
    """Return what a delivery names."""
    return ADAPTERS.load(kind).mention(delivery(kind, payload, event=event))


@pytest.mark.parametrize(
    ("kind", "places", "issues"),
    [
        ("github", HERE, ("7",)),
        ("gitea", HERE, ("7",)),
        ("gitlab", ("acme/web", "42"), ("42:7",)),
        ("linear", ("eng",), ("uuid-7", "ENG-7")),
        ("jira", ("proj",), ("10007", "PROJ-7")),
    ],
)
def test_a_changed_issue_is_named_as_its_tracker_knows_it(
    kind: str, places: tuple[str, ...], issues: tuple[str, ...]
) -> None:
    """By its id, by its identifier, or by both."""
    assert mention(kind, issue_payload(kind)) == Mention(places=places, issues=issues)


@pytest.mark.parametrize(
    ("event", "payload", "expected"),
    [
        ("ping", {"zen": "Keep it", "hook_id": 1}, {"ping": True}),
        ("issue_comment", {"issue": {"number": 7}, "comment": {"id": 1}}, {"issues": ("7",)}),
        (
            "issue_comment",
            {"issue": {"number": 8, "pull_request": {"url": "x"}}, "comment": {"id": 1}},
            {"numbers": (8,)},
        ),
        ("pull_request", {"number": 8, "pull_request": {"number": 8}}, {"numbers": (8,)}),
        ("pull_request_review", {"pull_request": {"number": 8}}, {"numbers": (8,)}),
        ("pull_request_review_thread", {"pull_request": {"number": 8}}, {"numbers": (8,)}),
        (
            "check_run",
            {"check_run": {"head_sha": "abc", "pull_requests": [{"number": 8}]}},
            {"numbers": (8,), "commits": ("abc",)},
        ),
        (
            "check_suite",
            {"check_suite": {"head_sha": "abc", "head_branch": "b", "pull_requests": []}},
            {"branches": ("b",), "commits": ("abc",)},
        ),
        (
            "workflow_run",
            {"workflow_run": {"head_sha": "abc", "head_branch": "b", "pull_requests": None}},
            {"branches": ("b",), "commits": ("abc",)},
        ),
        (
            "status",
            {"sha": "abc", "branches": [{"name": "b"}], "state": "success"},
            {"branches": ("b",), "commits": ("abc",)},
        ),
        ("push", {"ref": "refs/heads/sortie/A-1", "after": "abc"}, {"branches": ("sortie/A-1",)}),
        ("push", {"ref": "refs/tags/v1"}, None),
        ("star", {"action": "created"}, None),
        ("a\nb: c", {}, None),
    ],
)
def test_events_of_github(
    event: str, payload: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    """Comments on pull requests are comments on issues there."""
    found = mention("github", {**payload, "repository": repository("Acme/Web")}, event)

    assert found == (None if expected is None else Mention(places=HERE, **expected))


@pytest.mark.parametrize(
    ("event", "payload", "expected"),
    [
        ("issue_comment", {"issue": {"number": 7}, "is_pull": False}, {"issues": ("7",)}),
        (
            "issue_comment",
            {"issue": {"number": 8}, "is_pull": True},
            {"numbers": (8,), "part": "talk"},
        ),
        (
            "issue_comment",
            {"issue": {"number": 8, "pull_request": {"merged": False}}},
            {"numbers": (8,), "part": "talk"},
        ),
        (
            "pull_request_rejected",
            {"pull_request": {"number": 8}, "review": {"type": "x"}},
            {"numbers": (8,), "part": "talk"},
        ),
        ("pull_request", {"pull_request": {"number": 8}}, {"numbers": (8,)}),
        ("push", {"ref": "refs/heads/b", "after": "abc"}, {"branches": ("b",)}),
        ("status", {"sha": "abc", "state": "success"}, {"commits": ("abc",), "part": "checks"}),
        ("unheard of", {"sha": "abc"}, {"commits": ("abc",)}),
        ("release", {"action": "published", "release": {}}, None),
    ],
)
def test_events_of_gitea(
    event: str, payload: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    """And of Forgejo, which sends the same. What part has changed is told where it is certain."""
    found = mention("gitea", {**payload, "repository": repository("Acme/Web")}, event)

    assert found == (None if expected is None else Mention(places=HERE, **expected))


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (
            {
                "object_kind": "merge_request",
                "object_attributes": {
                    "iid": 8,
                    "source_branch": "b",
                    "last_commit": {"id": "abc"},
                },
            },
            {"numbers": (8,), "branches": ("b",), "commits": ("abc",)},
        ),
        (
            {"object_kind": "merge_request", "object_attributes": {"iid": 8, "action": "approved"}},
            {"numbers": (8,), "part": "talk"},
        ),
        (
            {"object_kind": "note", "object_attributes": {"id": 1}, "merge_request": {"iid": 8}},
            {"numbers": (8,), "part": "talk"},
        ),
        (
            {"object_kind": "note", "object_attributes": {"id": 1}, "issue": {"iid": 7}},
            {"issues": ("42:7",)},
        ),
        ({"object_kind": "work_item", "object_attributes": {"iid": 7}}, {"issues": ("42:7",)}),
        (
            {
                "object_kind": "pipeline",
                "object_attributes": {"sha": "abc", "ref": "b"},
                "merge_request": {"iid": 8, "source_branch": "b"},
            },
            {"numbers": (8,), "branches": ("b",), "commits": ("abc",), "part": "checks"},
        ),
        (
            {"object_kind": "build", "sha": "abc", "ref": "b"},
            {"branches": ("b",), "commits": ("abc",), "part": "checks"},
        ),
        ({"object_kind": "push", "ref": "refs/heads/b"}, {"branches": ("b",)}),
        ({"object_kind": "tag_push", "ref": "refs/tags/v"}, None),
        ({"object_kind": "wiki_page", "object_attributes": {"iid": 3}}, None),
    ],
)
def test_events_of_gitlab(payload: dict[str, Any], expected: dict[str, Any] | None) -> None:
    """A project is known by its path, its address and its number."""
    found = mention("gitlab", {**payload, "project": PROJECT})

    assert found == (None if expected is None else Mention(places=LAB, **expected))


@pytest.mark.parametrize(
    ("kind", "payload", "expected"),
    [
        (
            "linear",
            {"type": "Comment", "data": {"id": "c", "issueId": "u", "issue": {"id": "u"}}},
            Mention(issues=("u",)),
        ),
        (
            "linear",
            {"type": "IssueRelation", "data": {"issueId": "u", "relatedIssueId": "v"}},
            Mention(issues=("u", "v")),
        ),
        ("linear", {"type": "Project", "data": {"id": "p"}}, None),
        (
            "jira",
            {"webhookEvent": "comment_created", "issue": {"id": "1", "key": "P-1"}},
            Mention(places=("p",), issues=("1", "P-1")),
        ),
        (
            "jira",
            {
                "webhookEvent": "issuelink_created",
                "issueLink": {"sourceIssueId": 1, "destinationIssueId": 2},
            },
            Mention(issues=("1", "2")),
        ),
        ("jira", {"webhookEvent": "sprint_started", "sprint": {"id": 1}}, None),
    ],
)
def test_events_of_linear_and_jira(
    kind: str, payload: dict[str, Any], expected: Mention | None
) -> None:
    """What belongs to an issue names it."""
    assert mention(kind, payload) == expected


BOMBS = {
    "deep": b'{"issue":' + b"[" * 2_000_000,
    "deep beside": b'{"other":' + b'{"a":' * 1_000_000 + b"1" + b"}" * 1_000_000 + b"}",
    "huge number": b'{"issue":{"number":' + b"9" * 4_000_000 + b"}}",
    "exponent": b'{"issue":{"number":1e999999999}}',
    "not a number": b'{"issue":{"number":NaN}}',
    "no object": b"[]",
    "no JSON": b"issue=7",
    "nothing": b"",
    "no UTF-8": b'{"issue":{"number":"\xff\xfe"}}',
    "half": b'{"issue":{"number":7',
    "list of names": b'{"issue":{"number":[1,2]},"object_kind":["a"],"data":7}',
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
def test_a_bomb_in_a_signed_body_is_an_error_or_names_nothing(kind: str, body: bytes) -> None:
    """At once, and in no more memory than it has bytes."""
    one = WebhookDelivery(headers=signed(kind, body, event="issues"), body=body, at=NOW)
    adapter = ADAPTERS.load(kind)

    try:
        adapter.verify(one, SECRET)
        found = adapter.mention(one)
    except (DecodeError, RecursionError):
        found = None

    assert found is None


@pytest.mark.parametrize("kind", ["github", "gitlab", "jira"])
def test_more_names_than_are_taken_are_left_out(kind: str) -> None:
    """As are those that are no names."""
    long = "x" * 100_000
    runs = [{"number": number} for number in range(1, 100_000)]
    payload = {
        "check_run": {"head_sha": long, "head_branch": long, "pull_requests": runs},
        "object_kind": "build",
        "sha": long,
        "ref": long,
        "issue": {"key": f"{long}-1"} if kind == "jira" else None,
        "repository": repository(f"acme/{long}"),
    }

    found = mention(kind, payload)

    assert found is None or len(found.numbers) <= MOST_NAMES
    assert "xxx" not in str(found)


def test_mentions_of_one_place_are_one() -> None:
    """With what has changed, as far as that is the same. A burst names most things many times."""
    one = Mention(places=HERE, issues=("1",), numbers=(2,))
    other = Mention(places=HERE, issues=("1", "3"), commits=("c",), ping=True)
    elsewhere = Mention(places=("x",), issues=("1",))
    talk = Mention(places=HERE, numbers=(3,), part="talk")

    assert joined([one, elsewhere, talk, other, one, talk]) == (
        Mention(places=HERE, issues=("1", "3"), numbers=(2,), commits=("c",), ping=True),
        elsewhere,
        talk,
    )
