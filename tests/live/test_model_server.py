"""The scripted model server answers each provider's way, so that agents' failures are agents'."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.live.model_answers import Answer, tool
from tests.live.model_server import model_server

PATHS = {
    "/v1/messages": "content_block_delta",
    "/v1/responses": "response.output_text.delta",
    "/v1/chat/completions": "delta",
    "/v1beta/models/m:streamGenerateContent": "candidates",
}
BODY = {"model": "m", "stream": True, "tools": [{"name": "Bash"}], "messages": []}


def events(text: str) -> list[Any]:
    """Return the data of a stream of server-sent events."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("path", PATHS)
def test_answers_come_in_order(path: str) -> None:
    """A tool, then text in chunks, then the last answer ever after; each request is kept."""
    with model_server() as server, httpx.Client(trust_env=False) as client:
        script = server.script("a", tool("Bash", command="ls"), Answer(text="all is done"))

        told = [client.post(server.url("a") + path, json=BODY).text for _ in range(3)]

        assert ["Bash" in text for text in told] == [True, False, False]
        for text in told[1:]:
            assert sum(PATHS[path] in json.dumps(event) for event in events(text)) >= 3
        assert [request.body for request in script.requests] == [BODY] * 3


def test_errors_and_cuts() -> None:
    """A status with its headers, a stream that breaks off, and an aside that uses no answer up."""
    with model_server() as server, httpx.Client(trust_env=False) as client:
        url = server.url("b") + "/v1/messages"
        error = Answer(status=429, error="rate_limit_error", headers={"retry-after": "7"})
        server.script("b", error, Answer(text="one two three", cut_after=1))

        aside = client.post(url, json={"messages": []})
        refused = client.post(url, json=BODY)
        with pytest.raises(httpx.RemoteProtocolError):
            client.post(url, json=BODY)

        assert aside.json()["content"][0]["text"] == "scripted aside"
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
        assert refused.json()["error"]["type"] == "rate_limit_error"
