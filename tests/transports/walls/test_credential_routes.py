"""Credentials at the proxy: the agent has a placeholder, the real server gets the real thing."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Sequence
from pathlib import Path

import h11
import pytest
import trio

from sortie.model.model_endpoints import ModelEndpoint
from sortie.transports.walls.placeholders import HiddenCredentials, Placeholder
from sortie.transports.walls.proxied_credentials import (
    CredentialsError,
    ProxiedCredentials,
    RemoteCredential,
    proxied_credentials,
)
from tests.transports.walls.network import (
    LIMIT,
    Answer,
    MadeUpNetwork,
    SeenRequest,
    TestAuthority,
    answering,
    ask,
    connection,
    say,
    until_end,
)

KEY = "sk-ant-api03-" + "R3al" * 20
ENDPOINT = ModelEndpoint(
    base_url="MODEL_BASE_URL",
    default="https://models.example",
    keys=("MODEL_API_KEY", "MODEL_TOKEN"),
    unless=("MODEL_SIGNS",),
)
TOKEN = "ghp_" + "T0ken" * 7
GIT = RemoteCredential(
    url="https://forge.example/team/thing.git", username="x-access-token", password=TOKEN
)


@pytest.fixture
def authority(tmp_path: Path) -> TestAuthority:
    return TestAuthority(tmp_path)


def credentials() -> tuple[ProxiedCredentials, dict[str, str]]:
    """Return what a run has, and the environment of its agent behind the proxy at http://proxy."""
    env = {"MODEL_API_KEY": KEY, "COPY": f"key={KEY}", "PATH": "/bin"}
    made = proxied_credentials([ENDPOINT], env, GIT)
    return made, made.agent_env(env, "http://proxy")


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_the_agent_has_placeholders_and_no_key() -> None:
    """No variable holds a credential; each placeholder looks like one, and is another each time."""
    _, env = credentials()
    _, other = credentials()

    assert not any(KEY in value or TOKEN in value for value in env.values())
    assert env["MODEL_API_KEY"].startswith("sk-ant-api03-")
    assert len(env["MODEL_API_KEY"]) == len(KEY)
    assert env["COPY"] == f"key={env['MODEL_API_KEY']}"
    assert env["MODEL_API_KEY"] != other["MODEL_API_KEY"]
    assert env["MODEL_BASE_URL"] == "http://proxy/model-base-url"
    assert env["PATH"] == "/bin"


def test_git_is_led_to_the_proxy_behind_the_settings_that_it_has() -> None:
    """The settings of the environment stay; those of the proxy come after them."""
    env = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}

    led = proxied_credentials((), env, GIT).agent_env(env, "http://proxy")

    settings = [
        (led[f"GIT_CONFIG_KEY_{index}"], led[f"GIT_CONFIG_VALUE_{index}"])
        for index in range(int(led["GIT_CONFIG_COUNT"]))
    ]
    assert [key for key, _ in settings] == [
        "a.b",
        "url.http://proxy/git/team/thing.insteadOf",
        "http.http://proxy/git/team/thing.extraHeader",
        "http.http://proxy/git/team/thing.git.extraHeader",
    ]
    assert settings[1][1] == "https://forge.example/team/thing"


def test_nothing_shows_a_credential() -> None:
    """Neither what is made of one, nor a mistake in the environment, prints it."""
    made, _ = credentials()

    assert KEY not in repr(made)
    assert TOKEN not in repr(made)
    with pytest.raises(CredentialsError) as caught:
        proxied_credentials(
            [ENDPOINT], {"MODEL_API_KEY": KEY, "MODEL_BASE_URL": f"https://{KEY}@x"}
        )
    assert KEY not in str(caught.value)
    with pytest.raises(CredentialsError) as caught:
        proxied_credentials([ENDPOINT], {"MODEL_API_KEY": KEY, "MODEL_BASE_URL": f"https://{KEY}_"})
    assert KEY.lower() not in str(caught.value).lower()


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ({}, "set one of MODEL_API_KEY, MODEL_TOKEN"),
        ({"MODEL_API_KEY": " "}, "set one of MODEL_API_KEY, MODEL_TOKEN"),
        ({"MODEL_API_KEY": KEY, "MODEL_SIGNS": "1"}, "MODEL_SIGNS is set"),
        ({"MODEL_API_KEY": "short"}, "shorter than 8 characters"),
        ({"MODEL_API_KEY": "a\nb" * 10}, "that no header can hold"),
        ({"MODEL_API_KEY": KEY, "MODEL_BASE_URL": "models.example"}, "MODEL_BASE_URL is not an"),
        ({"MODEL_API_KEY": KEY, "MODEL_BASE_URL": "https://x/?a=b"}, "MODEL_BASE_URL is not an"),
        ({"MODEL_API_KEY": KEY, "MODEL_BASE_URL": "https://x/a/../b"}, "MODEL_BASE_URL is not an"),
    ],
)
def test_an_environment_that_cannot_be_led_is_an_error(env: dict[str, str], told: str) -> None:
    """The operator hears which variable is missing, or in the way."""
    with pytest.raises(CredentialsError, match=told):
        proxied_credentials([ENDPOINT], env)


def test_a_variable_that_is_off_is_not_in_the_way() -> None:
    """What agents take for false is so here as well."""
    made = proxied_credentials([ENDPOINT], {"MODEL_API_KEY": KEY, "MODEL_SIGNS": "0"})

    assert list(made.routes) == ["model-base-url"]


@pytest.mark.parametrize(
    ("header", "before", "after"),
    [
        ("x-api-key", "{}", KEY),
        ("api-key", "{}", KEY),
        ("x-goog-api-key", "{}", KEY),
        ("private-token", "{}", KEY),
        ("authorization", "Bearer {}", f"Bearer {KEY}"),
        ("authorization", "bearer  {}", f"bearer  {KEY}"),
        ("authorization", "token {}", f"token {KEY}"),
        ("x-other", "{}", None),
        ("authorization", "Bearer x{}", None),
        ("authorization", "Bearer {}x", None),
    ],
)
async def test_the_credential_is_put_in_where_its_placeholder_stands(
    authority: TestAuthority, header: str, before: str, after: str | None
) -> None:
    """It is put into headers of credentials alone, in the place of the whole placeholder."""
    net = MadeUpNetwork()
    made, env = credentials()
    value = before.format(env["MODEL_API_KEY"])

    async with (
        net.server("models.example", 443, answering(), tls=authority.server("models.example")),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        said = await ask(
            url,
            f"POST /model-base-url/v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n{header}: {value}\r\n"
            "Accept-Encoding: gzip, br\r\nContent-Length: 2\r\n\r\n{}".encode(),
        )

    (seen,) = net.seen
    assert said.startswith(b"HTTP/1.1 200 ")
    assert (seen.target, seen.body) == ("/v1/messages", b"{}")
    assert seen.header("host") == ["models.example"]
    assert seen.header("accept-encoding") == ["identity"]
    assert seen.header(header) == [value if after is None else after]
    assert [(fact.host, fact.port) for fact in net.ended] == [("models.example", 443)]


async def test_name_and_password_are_put_in(authority: TestAuthority) -> None:
    """Of Basic the password is exchanged, for the paths of git in one repository."""
    net = MadeUpNetwork()
    made, env = credentials()
    header = env["GIT_CONFIG_VALUE_1"]

    async with (
        net.server("forge.example", 443, answering(), tls=authority.server("forge.example")),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        for path in ("/team/thing.git/info/refs?service=git-upload-pack", "/team/thing/HEAD"):
            await ask(url, f"GET /git{path} HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n".encode())

    assert [seen.header("authorization") for seen in net.seen] == [
        [basic("x-access-token", TOKEN)],
        [basic("x-access-token", TOKEN)],
    ]


@pytest.mark.parametrize(
    "path",
    [
        "/team/other.git/info/refs",
        "/team/thing-else/info/refs",
        "/team/thing.git/../other/info/refs",
        "/team/thing.git/%2e%2e/other/info/refs",
        "/team/thing.git/info/..%2f..%2fother",
        "/team/thing.git/info\\..\\..\\other",
        "/team/thing.git/settings",
        "/team/thing/-/settings",
        "/team%2fthing.git/info/refs",
        "/api/v1/user",
        "/",
    ],
)
async def test_a_credential_for_a_repository_opens_nothing_else(
    authority: TestAuthority, path: str
) -> None:
    """A placeholder on another path is refused, also where the host is listed."""
    net = MadeUpNetwork()
    made, env = credentials()

    async with (
        net.server("forge.example", 443, answering(), tls=authority.server("forge.example")),
        net.proxy("forge.example", credentials=made, tls=authority.client()) as url,
    ):
        header = env["GIT_CONFIG_VALUE_1"]
        said = await ask(url, f"GET /git{path} HTTP/1.1\r\nHost: x\r\n{header}\r\n\r\n".encode())

    assert said.split()[1] in (b"400", b"403")
    assert (net.seen, net.connected) == ([], [])
    assert len(net.refused) == 1


async def test_another_repository_of_the_host_is_a_listed_host_or_not(
    authority: TestAuthority,
) -> None:
    """Without a placeholder the path of another repository is judged as any other host."""
    net = MadeUpNetwork()
    made, _ = credentials()
    request = b"GET /git/team/thing-else.git/info/refs HTTP/1.1\r\nHost: x\r\n\r\n"

    async with net.server("forge.example", 443, answering(), tls=authority.server("forge.example")):
        async with net.proxy(credentials=made, tls=authority.client()) as url:
            refused = await ask(url, request)
        async with net.proxy("forge.example", credentials=made, tls=authority.client()) as url:
            said = await ask(url, request)

    assert refused.startswith(b"HTTP/1.1 403 forge.example:443 is not reachable")
    assert said.startswith(b"HTTP/1.1 200 ")
    assert [seen.target for seen in net.seen] == ["/team/thing-else.git/info/refs"]


@pytest.mark.parametrize(
    ("target", "header"),
    [
        ("http://docs.example/", "X-Api-Key: {model}"),
        ("http://docs.example/", "X-Anything: a {model} b"),
        ("http://docs.example/", "Authorization: Bearer {model}"),
        ("http://docs.example/", "Authorization: {git}"),
        ("/git/team/thing.git/HEAD", "X-Api-Key: {model}"),
        ("/model-base-url/v1/models", "Authorization: {git}"),
    ],
)
async def test_a_placeholder_for_another_host_is_refused(
    authority: TestAuthority, target: str, header: str
) -> None:
    """It is worth nothing there, and the operator hears that it was tried."""
    net = MadeUpNetwork()
    made, env = credentials()
    git = env["GIT_CONFIG_VALUE_1"].removeprefix("Authorization: ")
    line = header.format(model=env["MODEL_API_KEY"], git=git)

    async with (
        net.server("docs.example", 80, answering()),
        net.proxy("docs.example", credentials=made, tls=authority.client()) as url,
    ):
        said = await ask(url, f"GET {target} HTTP/1.1\r\nHost: x\r\n{line}\r\n\r\n".encode())

    assert said.startswith(b"HTTP/1.1 403 the request holds the placeholder of a credential")
    assert net.seen == []
    assert len(net.refused) == 1


async def test_a_program_that_asks_the_proxy_for_the_proxy_is_served(
    authority: TestAuthority,
) -> None:
    """One that does not know NO_PROXY reaches the routes as well."""
    net = MadeUpNetwork()
    made, env = credentials()

    async with (
        net.server("models.example", 443, answering(), tls=authority.server("models.example")),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        said = await ask(
            url,
            f"GET http://127.0.0.1:3128/model-base-url/v1 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"x-api-key: {env['MODEL_API_KEY']}\r\n\r\n".encode(),
        )

    assert said.startswith(b"HTTP/1.1 200 ")
    assert net.seen[0].header("x-api-key") == [KEY]


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_server_without_the_hosts_certificate_gets_no_credential(
    authority: TestAuthority, trusted: bool, tmp_path: Path
) -> None:
    """A certificate of another name, or of an unknown authority, ends the request."""
    net = MadeUpNetwork()
    made, env = credentials()
    (tmp_path / "other").mkdir()
    stranger = TestAuthority(tmp_path / "other")
    server = authority.server("evil.example") if trusted else stranger.server("models.example")

    async with (
        net.server("models.example", 443, answering(), tls=server),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        said = await ask(
            url,
            f"GET /model-base-url/ HTTP/1.1\r\nHost: x\r\n"
            f"x-api-key: {env['MODEL_API_KEY']}\r\n\r\n".encode(),
        )

    assert said.startswith(b"HTTP/1.1 502 models.example cannot be trusted over TLS: ")
    assert net.seen == []
    assert net.ended[0].error is not None


def echo_of(texts: Sequence[str], pause: trio.Event | None = None) -> Answer:
    """Return what answers with texts, one chunk each, in which {} is the key as it was sent."""

    async def answer(state: h11.Connection, stream: trio.abc.Stream, seen: SeenRequest) -> None:
        key = seen.header("x-api-key")[0]
        headers = [("Content-Type", "text/event-stream"), ("X-Echo", f"<{key}>")]
        await say(state, stream, h11.Response(status_code=200, headers=headers))
        for text in texts:
            await say(state, stream, h11.Data(data=text.replace("{}", key).encode()))
            if pause is not None:
                await pause.wait()
        await say(state, stream, h11.EndOfMessage())

    return answer


async def test_events_pass_one_by_one_over_tls(authority: TestAuthority) -> None:
    """What a model says is passed on as it says it."""
    net = MadeUpNetwork()
    made, env = credentials()
    read = trio.Event()

    async with (
        net.server(
            "models.example",
            443,
            echo_of(["data: first\n\n", "data: second\n\n"], read),
            tls=authority.server("models.example"),
        ),
        net.proxy(credentials=made, tls=authority.client()) as url,
        await connection(url) as stream,
    ):
        await stream.send_all(
            f"GET /model-base-url/ HTTP/1.1\r\nHost: x\r\n"
            f"x-api-key: {env['MODEL_API_KEY']}\r\n\r\n".encode()
        )
        said = b""
        with trio.fail_after(LIMIT):
            while b"first\n\n" not in said:
                said += await stream.receive_some(65536)
        assert b"second" not in said
        read.set()
        said += await until_end(stream)

    assert b"data: second\n\n" in said


async def test_an_answer_that_repeats_the_credential_repeats_the_placeholder(
    authority: TestAuthority,
) -> None:
    """In headers and in the body, the agent does not see the key."""
    net = MadeUpNetwork()
    made, env = credentials()

    async with (
        net.server(
            "models.example",
            443,
            echo_of(["your key is {}", ", ", "really: {}{}", KEY[:20], KEY[20:], " sk-"]),
            tls=authority.server("models.example"),
        ),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        said = await ask(
            url,
            f"GET /model-base-url/ HTTP/1.0\r\nx-api-key: {env['MODEL_API_KEY']}\r\n\r\n".encode(),
        )

    shown = env["MODEL_API_KEY"]
    assert KEY.encode() not in said
    assert f"x-echo: <{shown}>\r\n".encode() in said
    assert said.endswith(f"\r\n\r\nyour key is {shown}, really: {shown * 3} sk-".encode())


async def test_an_answer_that_repeats_name_and_password_repeats_the_placeholder(
    authority: TestAuthority,
) -> None:
    """What stood in the header is hidden as well, as it was encoded there."""
    net = MadeUpNetwork()
    made, env = credentials()

    async def repeating(state: h11.Connection, stream: trio.abc.Stream, seen: SeenRequest) -> None:
        await say(state, stream, h11.Response(status_code=200, headers=[]))
        said = {"header": seen.header("authorization")[0], "token": TOKEN}
        await say(state, stream, h11.Data(data=json.dumps(said).encode()))
        await say(state, stream, h11.EndOfMessage())

    async with (
        net.server("forge.example", 443, repeating, tls=authority.server("forge.example")),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        header = env["GIT_CONFIG_VALUE_1"]
        said = await ask(
            url, f"POST /git/team/thing.git/info/lfs HTTP/1.0\r\n{header}\r\n\r\n".encode()
        )

    placeholder = made.routes["git"].placeholders[0].value
    told = {"header": header.removeprefix("Authorization: "), "token": placeholder}
    assert json.loads(said.partition(b"\r\n\r\n")[2]) == told


def test_a_credential_is_hidden_wherever_chunks_end() -> None:
    """However a body is cut into chunks, the result is the same, and of the same length."""
    one = Placeholder(value="sk-AAAAAAAAAA", secret="sk-sk-sk-real")
    body = b"a sk-sk-sk-sk-real b sk-sk-sk-real" + b"sk-sk-sk-rea"
    expected = b"a sk-sk-AAAAAAAAAA b sk-AAAAAAAAAA" + b"sk-sk-sk-rea"

    for first in range(len(body) + 1):
        for second in range(first, len(body) + 1):
            hidden = HiddenCredentials([one], [])
            parts = [body[:first], body[first:second], body[second:]]
            found = b"".join(map(hidden.body, parts)) + hidden.rest()
            assert found.replace(b"sk-AAAAAAAAAA", b"sk-sk-sk-real") == body
            assert b"sk-sk-sk-real" not in found
            assert len(found) == len(expected)


async def test_an_encoding_that_was_not_asked_for_is_not_passed_on(
    authority: TestAuthority,
) -> None:
    """A body that cannot be read could hold the credential."""
    net = MadeUpNetwork()
    made, env = credentials()
    zipped = answering(b"\x1f\x8b", headers=[("Content-Encoding", "gzip")])

    async with (
        net.server("models.example", 443, zipped, tls=authority.server("models.example")),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        said = await ask(
            url,
            f"GET /model-base-url/ HTTP/1.1\r\nHost: x\r\n"
            f"x-api-key: {env['MODEL_API_KEY']}\r\n\r\n".encode(),
        )

    assert said.startswith(b"HTTP/1.1 502 the server answers in an encoding")


@pytest.mark.parametrize(
    ("location", "passed"),
    [
        ("https://models.example/v2/", "/model-base-url/v2/"),
        ("/v2/", "/model-base-url/v2/"),
        ("https://models.example.evil/v2/", "https://models.example.evil/v2/"),
        ("//evil.example/", "//evil.example/"),
        ("http://models.example/v2/", "http://models.example/v2/"),
    ],
)
async def test_a_redirect_to_the_same_server_leads_to_the_route(
    authority: TestAuthority, location: str, passed: str
) -> None:
    """An agent that follows it asks with the credential again; elsewhere it has none."""
    net = MadeUpNetwork()
    made, env = credentials()
    moved = answering(status=307, headers=[("Location", location)])

    async with (
        net.server("models.example", 443, moved, tls=authority.server("models.example")),
        net.proxy(credentials=made, tls=authority.client()) as url,
    ):
        said = await ask(
            url,
            f"GET /model-base-url/ HTTP/1.1\r\nHost: x\r\n"
            f"x-api-key: {env['MODEL_API_KEY']}\r\n\r\n".encode(),
        )

    assert f"ocation: {passed}\r\n".encode() in said


async def test_a_gateway_of_the_operator_is_reached_wherever_it_is() -> None:
    """The base URL of the environment is the operator's word, also for a private address."""
    net = MadeUpNetwork(names={"gateway.corp": ["10.0.0.9"]})
    env = {"MODEL_TOKEN": KEY, "MODEL_BASE_URL": "http://gateway.corp:4000/team/"}
    made = proxied_credentials([ENDPOINT], env)

    async with (
        net.server("gateway.corp", 4000, answering()),
        net.proxy(credentials=made) as url,
    ):
        led = made.agent_env(env, url)
        path = led["MODEL_BASE_URL"].removeprefix(url)
        said = await ask(
            url,
            f"GET {path}/v1/models HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {led['MODEL_TOKEN']}\r\n\r\n".encode(),
        )

    assert said.startswith(b"HTTP/1.1 200 ")
    assert net.seen[0].target == "/team/v1/models"
    assert net.seen[0].header("authorization") == [f"Bearer {KEY}"]
    assert net.seen[0].header("host") == ["gateway.corp:4000"]


def test_a_context_of_the_tests_checks_certificates(authority: TestAuthority) -> None:
    """Guards these tests: their client checks names and authorities, as the system's does."""
    assert authority.client().check_hostname
    assert authority.client().verify_mode is ssl.CERT_REQUIRED
