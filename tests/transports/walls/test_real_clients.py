"""Programs that agents use, behind the proxy: curl, and git with a repository over HTTPS."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import h11
import pytest
import trio

from sortie.transports.walls.filter_proxy import proxy_variables
from sortie.transports.walls.proxied_credentials import RemoteCredential, proxied_credentials
from tests.transports.walls.network import (
    LIMIT,
    Answer,
    MadeUpNetwork,
    SeenRequest,
    TestAuthority,
    answering,
    say,
)

TOKEN = "ghp_" + "T0ken" * 7
CREDENTIAL = "Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()

curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


@pytest.fixture
def authority(tmp_path: Path) -> TestAuthority:
    return TestAuthority(tmp_path)


async def run(
    *argv: str, env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, whatever that is."""
    with trio.fail_after(LIMIT):
        return await trio.run_process(
            argv, env=env, cwd=cwd, capture_stdout=True, capture_stderr=True, check=False
        )


def environment(url: str, home: Path) -> dict[str, str]:
    """Return the variables of a program that has a proxy at ``url``."""
    given = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C"}
    return given | {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"} | proxy_variables(url)


@curl
async def test_curl_reaches_what_is_listed(authority: TestAuthority, tmp_path: Path) -> None:
    """It finds the proxy by its variables, and checks the server's certificate itself."""
    net = MadeUpNetwork()

    async with (
        net.server("docs.example", 443, answering(), tls=authority.server("docs.example")),
        net.server("plain.example", 80, answering(b"plain\n")),
        net.proxy("docs.example", "plain.example") as url,
    ):
        env = environment(url, tmp_path)
        secure = await run(
            "curl", "-sS", "--cacert", str(authority.path), "https://docs.example/", env=env
        )
        plain = await run("curl", "-sS", *["http://plain.example/"] * 2, env=env)
        refused = await run("curl", "-sS", "https://evil.example/", env=env)
        told = await run("curl", "-sS", "http://evil.example/", env=env)

    assert (secure.returncode, secure.stdout) == (0, b"hello\n")
    assert (plain.returncode, plain.stdout) == (0, b"plain\nplain\n")
    assert refused.returncode == 56
    assert b"403" in refused.stderr
    assert told.stdout.endswith(b"sandbox.network does not list evil.example\n")
    assert [fact.host for fact in net.refused] == ["evil.example", "evil.example"]


@git
async def test_git_clones_and_pushes_with_a_placeholder(
    authority: TestAuthority, tmp_path: Path
) -> None:
    """It has no credential, works with the address of the repository, and reaches no other."""
    net = MadeUpNetwork()
    forge = tmp_path / "forge"
    for name in ("thing", "other"):
        await make_repository(forge / "team" / f"{name}.git", tmp_path)
    url_of = "https://forge.example/team/{}.git".format
    made = proxied_credentials(
        (), {}, RemoteCredential(url=url_of("thing"), username="x-access-token", password=TOKEN)
    )

    async with (
        net.server("forge.example", 443, git_server(forge), tls=authority.server("forge.example")),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        env = made.agent_env(environment(url, tmp_path), url)
        here = tmp_path / "clone"
        cloned = await run("git", "clone", "-q", url_of("thing"), str(here), env=env)
        config = ("-c", "user.name=a", "-c", "user.email=a@example.org")
        (here / "big").write_bytes(os.urandom(3_000_000))
        await run("git", "add", "big", env=env, cwd=here)
        await run("git", *config, "commit", "-q", "-m", "Work", env=env, cwd=here)
        pushed = await run("git", "push", "-q", "origin", "HEAD", env=env, cwd=here)
        other = await run("git", "clone", "-q", url_of("other"), str(tmp_path / "o"), env=env)

    assert (cloned.returncode, cloned.stderr) == (0, b"")
    assert (pushed.returncode, pushed.stderr) == (0, b"")
    assert log_of(forge / "team" / "thing.git") == "Work\nBegin\n"
    assert other.returncode != 0
    assert not any(TOKEN in value or CREDENTIAL in value for value in env.values())
    assert TOKEN not in (here / ".git" / "config").read_text()
    assert {seen.target.split("/")[2] for seen in net.seen} == {"thing.git"}


async def make_repository(path: Path, home: Path) -> None:
    """Make a bare repository with one commit."""
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"}
    config = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    await run("git", "init", "-q", "--bare", "-b", "main", str(path), env=env)
    await run("git", "config", "http.receivepack", "true", env=env, cwd=path)
    tree = home / f"tree-{path.name}"
    await run("git", "clone", "-q", str(path), str(tree), env=env)
    await run("git", *config, "commit", "-q", "--allow-empty", "-m", "Begin", env=env, cwd=tree)
    await run("git", "push", "-q", "origin", "HEAD:main", env=env, cwd=tree)


def log_of(path: Path) -> str:
    argv = ["git", "log", "--format=%s", "main"]
    return subprocess.run(argv, cwd=path, capture_output=True, text=True, check=True).stdout


def git_server(root: Path) -> Answer:
    """Return what answers as a forge does: git's own program, for whoever has the credential."""

    async def answer(state: h11.Connection, stream: trio.abc.Stream, seen: SeenRequest) -> None:
        if seen.header("authorization") != [CREDENTIAL]:
            asks = [("WWW-Authenticate", "Basic"), ("Content-Length", "0")]
            await say(state, stream, h11.Response(status_code=401, headers=asks))
            await say(state, stream, h11.EndOfMessage())
            return
        path, _, query = seen.target.partition("?")
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": seen.method,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": "".join(seen.header("content-type")),
            "CONTENT_LENGTH": str(len(seen.body)),
            "HTTP_CONTENT_ENCODING": "".join(seen.header("content-encoding")),
            "GIT_PROTOCOL": "".join(seen.header("git-protocol")),
            "REMOTE_USER": "agent",
        }
        done = await trio.run_process(
            ["git", "http-backend"], env=env, stdin=seen.body, capture_stdout=True, check=False
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        await say(state, stream, h11.Response(status_code=status, headers=list(headers.items())))
        await say(state, stream, h11.Data(data=body))
        await say(state, stream, h11.EndOfMessage())

    return answer
