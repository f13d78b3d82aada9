"""What GitHub's answers look like, as much as its description asks for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

Json = Any


def a_user(login: str) -> Json:
    """Return a user."""
    url = f"https://api.github.com/users/{login}"
    names = (
        "followers_url",
        "following_url",
        "gists_url",
        "starred_url",
        "subscriptions_url",
        "organizations_url",
        "repos_url",
        "events_url",
        "received_events_url",
    )
    return {
        "login": login,
        "id": 1,
        "node_id": "U_1",
        "avatar_url": url,
        "gravatar_id": "",
        "url": url,
        "html_url": f"https://github.com/{login}",
        "type": "User",
        "site_admin": False,
        **dict.fromkeys(names, url),
    }


def a_label(repository: str, name: str) -> Json:
    """Return a label."""
    return {
        "id": abs(hash(name)) % 10**9,
        "node_id": "L_1",
        "url": f"{repository}/labels/x",
        "name": name,
        "description": None,
        "color": "ededed",
        "default": False,
    }


def an_issue(repository: str, number: int, at: datetime) -> Json:
    """Return an open issue without labels."""
    url = f"{repository}/issues/{number}"
    when = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "id": 1_000_000 + number,
        "node_id": f"I_{number}",
        "number": number,
        "url": url,
        "repository_url": repository,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "html_url": f"https://github.com/octo-org/hello-world/issues/{number}",
        "title": f"Issue {number}",
        "body": None,
        "user": a_user("ann"),
        "labels": [],
        "state": "open",
        "state_reason": None,
        "locked": False,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "comments": 0,
        "created_at": when,
        "updated_at": when,
        "closed_at": None,
        "author_association": "MEMBER",
    }


_REPOSITORY_URLS = """
archive assignees blobs branches collaborators comments commits compare contents contributors
deployments downloads events forks git_commits git_refs git_tags hooks html issue_comment
issue_events issues keys labels languages merges milestones notifications pulls releases
stargazers statuses subscribers subscription tags teams trees clone git ssh svn mirror
"""

_COUNTS = """
forks forks_count open_issues open_issues_count size stargazers_count watchers
watchers_count network_count subscribers_count
"""


def a_repository(
    url: str, *, has_issues: bool, archived: bool, private: bool, may_write: bool
) -> Json:
    """Return a repository."""
    when = "2020-01-01T00:00:00Z"
    return {
        **{f"{name}_url": url for name in _REPOSITORY_URLS.split()},
        **dict.fromkeys(_COUNTS.split(), 0),
        **dict.fromkeys(("fork", "disabled", "has_pages", "has_discussions"), False),
        **dict.fromkeys(("has_projects", "has_wiki"), True),
        **dict.fromkeys(("description", "homepage", "language", "license")),
        "id": 42,
        "node_id": "R_42",
        "name": "hello-world",
        "owner": a_user("octo-org"),
        "default_branch": "main",
        "pushed_at": when,
        "created_at": when,
        "updated_at": when,
        "url": url,
        "full_name": "octo-org/hello-world",
        "private": private,
        "has_issues": has_issues,
        "archived": archived,
        "permissions": {
            "admin": False,
            "maintain": False,
            "push": may_write,
            "triage": may_write,
            "pull": True,
        },
    }


def an_installation(url: str) -> Json:
    """Return where a GitHub App is installed."""
    return {
        "id": 77,
        "account": a_user("octo-org"),
        "repository_selection": "selected",
        "access_tokens_url": url,
        "repositories_url": url,
        "html_url": url,
        "app_id": 5,
        "app_slug": "sortie",
        "target_id": 1,
        "target_type": "Organization",
        "permissions": {"issues": "write"},
        "events": [],
        "single_file_name": None,
        "suspended_by": None,
        "suspended_at": None,
        "created_at": "2020-01-01T00:00:00Z",
        "updated_at": "2020-01-01T00:00:00Z",
    }
