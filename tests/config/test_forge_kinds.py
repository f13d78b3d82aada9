"""``repository``, ``verify`` and ``forge`` together: what does not fit is said at its place."""

from __future__ import annotations

import pytest

from sortie.config.forge_kinds import forge_kind
from tests.config.sample import GOOD, around, decoded

TOKEN = "credential: $FORGE_TOKEN"
HTTPS = f"repository: {{url: 'https://git.example.org/team/thing', {TOKEN}}}\n"
SURROUNDINGS = around({"FORGE_TOKEN": "token-1234"})


@pytest.mark.parametrize(
    ("blocks", "key", "severity", "message"),
    [
        (HTTPS, "forge.kind", "error", "cannot be told from repository.url"),
        (f"{HTTPS}forge: {{kind: hg}}\n", "forge.kind", "error", "not hg"),
        (
            f"{HTTPS}forge: {{kind: gitea, endpoint: nope}}\n",
            "forge.endpoint",
            "error",
            "needs an address such as https://git.example.org",
        ),
        (
            f"{HTTPS}forge: {{kind: gitea, endpoint: 'https://me:pass@git.example.org'}}\n",
            "forge.endpoint",
            "error",
            "the key belongs in repository.credential",
        ),
        (
            f"{HTTPS}forge: {{kind: gitea, endpoint: 'http://git.example.org'}}\n",
            "forge.endpoint",
            "warning",
            "has no https",
        ),
        (
            f"repository: {{url: /srv/thing.git, {TOKEN}}}\nforge: {{kind: github}}\n",
            "forge.kind",
            "error",
            "cannot be github here: repository.url names no server",
        ),
        (
            "repository: {url: 'git@github.com:team/thing'}\n",
            "repository.credential",
            "error",
            "is needed to open pull requests at github",
        ),
        (
            "repository: {url: /srv/thing.git, branch: work}\n",
            "repository.branch",
            "error",
            "would be the same for all issues",
        ),
        (
            "repository: {url: /srv/thing.git, author_name: '<>'}\n",
            "repository.author_name",
            "error",
            "needs a name",
        ),
        (
            "repository: {url: /srv/thing.git, no_change: Todo}\n",
            "repository.no_change",
            "error",
            "is in active_states",
        ),
        (
            "repository: {url: /srv/thing.git, no_change: Reviw}\n",
            "repository.no_change",
            "warning",
            'is no state of the tracker\'s settings; did you mean "Review"?',
        ),
        (
            f"{HTTPS}forge: {{kind: gitea}}\nreactions: {{merged: {{state: Reviw}}}}\n",
            "reactions.merged.state",
            "warning",
            'did you mean "Review"?',
        ),
        (
            f"{HTTPS}forge: {{kind: gitea}}\nreactions: {{closed: {{state: todo}}}}\n",
            "reactions.closed.state",
            "error",
            "is in active_states",
        ),
        ("verify: {commands: [make]}\n", "verify", "warning", "means nothing without"),
        (
            f"repository: {{url: 'http://git.example.org/team/thing', {TOKEN}}}\n"
            "forge: {kind: none}\n",
            "repository.url",
            "warning",
            "has no https",
        ),
    ],
)
def test_what_does_not_fit_is_told_once(blocks: str, key: str, severity: str, message: str) -> None:
    """An error leaves no settings, a warning does; no message has a password."""
    found = decoded(f"{GOOD}{blocks}", SURROUNDINGS)

    (problem,) = found.problems
    assert (problem.key, problem.severity) == (key, severity)
    assert message in problem.message
    assert "pass@" not in problem.message
    assert (found.settings is None) == (severity == "error")


@pytest.mark.parametrize(
    ("blocks", "kind"),
    [
        ("", "none"),
        ("repository: {url: /srv/thing.git}\n", "none"),
        (f"repository: {{url: 'git@GitHub.com:team/thing', {TOKEN}}}\n", "github"),
        (f"repository: {{url: 'https://codeberg.org/team/thing', {TOKEN}}}\n", "gitea"),
        (f"{HTTPS}forge: {{kind: gitlab}}\n", "gitlab"),
        (
            f"repository: {{url: /srv/thing.git, {TOKEN}}}\n"
            "forge: {kind: gitea, endpoint: 'http://127.0.0.1:8080'}\n",
            "gitea",
        ),
    ],
)
def test_the_kind_follows_from_the_address(blocks: str, kind: str) -> None:
    """Unless it is set."""
    found = decoded(f"{GOOD}{blocks}", SURROUNDINGS)

    assert found.settings is not None
    assert forge_kind(found.settings) == kind
