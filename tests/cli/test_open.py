"""``sortie open``: the link, and the browser that is opened with it."""

from __future__ import annotations

import json
import stat
import webbrowser
from pathlib import Path

import pytest

from sortie.cli import open as module
from tests.cli.conftest import Cli
from tests.cli.fake_daemon import FakeDaemon
from tests.cli.world import Ran

SIGN_IN = {"path": "/sign-in?code=abc-_&<x", "expires_in": 120}


@pytest.fixture
def link(daemon: FakeDaemon) -> str:
    daemon.answers["POST /api/v1/sign-in"] = (200, SIGN_IN)
    return f"{daemon.url.rstrip('/')}/sign-in?code=abc-_&<x"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Be on a desktop; the addresses that its browser is given."""
    urls: list[str] = []

    def open_url(url: str) -> bool:
        urls.append(url)
        return True

    monkeypatch.setattr(module, "_is_on_a_desktop", lambda: True)
    monkeypatch.setattr(webbrowser, "open", open_url)
    return urls


def test_the_link_is_printed(cli: Cli, link: str) -> None:
    """As a line, and as JSON with how long it works; where there is no desktop that is all."""
    text = cli("open")
    data = cli("open", "--format", "json")

    assert text == Ran(code=0, out=f"{link}\n", err="")
    assert json.loads(data.out) == {"url": link, "expires_in": 120}


def test_a_browser_is_opened_without_telling_its_arguments(
    cli: Cli, link: str, opened: list[str]
) -> None:
    """The code is in a file of this user's alone, which leads on to the link, and not in what
    everybody sees of the browser's process."""
    cli("open")
    ran = cli("open")

    assert ran == Ran(code=0, out=f"{link}\n", err="")
    (url,) = set(opened)
    path = Path(url.removeprefix("file://"))
    assert "abc" not in url
    assert path.name.endswith(".sign-in.html")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "url=http://127.0.0.1" in path.read_text()
    assert "code=abc-_&amp;&lt;x" in path.read_text()


@pytest.mark.parametrize("arguments", [("--print",), ("--format", "json")])
def test_no_browser_is_opened_where_none_is_wanted(
    cli: Cli, link: str, opened: list[str], arguments: tuple[str, ...]
) -> None:
    """With --print, and for programs."""
    assert cli("open", *arguments).code == 0
    assert opened == []


def test_a_browser_that_does_not_open_is_told(
    cli: Cli, link: str, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The link stands there to be opened by hand."""
    monkeypatch.setattr(webbrowser, "open", lambda url: False)

    ran = cli("open")

    assert (ran.code, ran.out) == (0, f"{link}\n")
    assert "open the link by hand" in ran.err


@pytest.mark.parametrize("document", [{}, {"path": 1}, {"path": "//evil.example"}, {"path": "x"}])
def test_an_answer_without_a_link_is_an_error(
    cli: Cli, daemon: FakeDaemon, document: dict[str, object]
) -> None:
    """Of an older daemon, for example."""
    daemon.answers["POST /api/v1/sign-in"] = (200, document)

    ran = cli("open")

    assert (ran.code, ran.out) == (1, "")
    assert "gave no link" in ran.err
