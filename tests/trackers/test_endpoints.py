"""``tracker.endpoint`` of trackers over HTTP: what ``validate`` says of each form of address."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.daemon.workflow_file import schemas
from sortie.http.endpoint import ServerEndpoint
from sortie.model import TrackerError, WorkflowError
from sortie.workflow.loader import load

WORKFLOW = """\
---
tracker:
  kind: {kind}
  endpoint: {endpoint!r}
  project: {project}
  api_key: $KEY
  active_states: [Todo]
  terminal_states: [Done]
  handoff_state: Review
kiro: {{trust_all_tools: true}}
---
Do it
"""
PROJECTS = {"github": "octo/hello", "gitlab": "group/name", "jira": "PROJ", "linear": "ENG"}
PATHS = {"github": "/api/v3", "gitlab": "", "jira": "", "linear": "/graphql"}
KEYS = {"jira": "me@example.org:token-0123456789"}
SECRET = "pw-s3cret"
HTTPS = "has no https, so that anybody on the way can read the key"

REFUSED = [
    "tracker.example.org{path}",
    "ftp://tracker.example.org{path}",
    "file:///tmp/x",
    "https://",
    "https:///path",
    "https://:8080{path}",
    "https://tracker.example.org:port{path}",
    "https://tracker.example.org:99999{path}",
    "https://tracker example.org{path}",
    "https://[::1{path}",
    f"https://me:{SECRET}@tracker.example.org{{path}}",
    f"https://{SECRET}@tracker.example.org{{path}}",
    "https://@tracker.example.org{path}",
    f"https://tracker.example.org{{path}}?token={SECRET}",
    "https://tracker.example.org{path}?",
    f"https://tracker.example.org{{path}}#{SECRET}",
    "https://tracker.example.org{path}#",
]
TAKEN = {
    "https://tracker.example.org{path}": None,
    "https://tracker.example.org{path}/": None,
    "https://tracker.example.org:8443{path}": None,
    "HTTPS://Tracker.Example.Org{path}": None,
    "https://10.0.0.7{path}": None,
    "https://[fd00::7]:8443{path}": None,
    "http://localhost:8080{path}": None,
    "http://127.0.0.1{path}": None,
    "http://[::1]:8080{path}": None,
    "http://tracker.example.org{path}": HTTPS,
    "http://10.0.0.7{path}": HTTPS,
    "http://127.0.0.1.example.org{path}": HTTPS,
}


def found(tmp_path: Path, kind: str, endpoint: str) -> list[tuple[str, int, str]]:
    """Return severity, line and message of what is found about the endpoint."""
    path = tmp_path / "W.md"
    path.write_text(WORKFLOW.format(kind=kind, endpoint=endpoint, project=PROJECTS[kind]))
    env = {"HOME": str(tmp_path), "KEY": KEYS.get(kind, "token-0123456789")}
    try:
        problems = load(path, schemas=schemas(), env=env).warnings
    except WorkflowError as error:
        problems = error.problems
    about = [problem for problem in problems if problem.key == "tracker.endpoint"]
    return [(problem.severity, problem.line, problem.message) for problem in about]


@pytest.mark.parametrize("kind", PROJECTS)
@pytest.mark.parametrize("form", REFUSED)
def test_what_the_client_refuses_validate_refuses(tmp_path: Path, kind: str, form: str) -> None:
    """At its place, once, and without a secret that stands in it."""
    endpoint = form.format(path=PATHS[kind])

    problems = found(tmp_path, kind, endpoint)

    ((severity, line, message),) = problems
    assert (severity, line) == ("error", 4)
    assert SECRET not in message
    with pytest.raises(TrackerError):
        ServerEndpoint.of(endpoint)


@pytest.mark.parametrize("kind", PROJECTS)
@pytest.mark.parametrize(("form", "warning"), TAKEN.items())
def test_what_the_client_takes_validate_takes(
    tmp_path: Path, kind: str, form: str, warning: str | None
) -> None:
    """With a warning where the key would go unencrypted to another machine."""
    endpoint = form.format(path=PATHS[kind])

    problems = found(tmp_path, kind, endpoint)

    assert problems == ([("warning", 4, warning)] if warning else [])
    ServerEndpoint.of(endpoint)
