"""The dashboard of a running daemon: looked at by anybody, and used by who has signed in."""

from __future__ import annotations

import httpx

from tests.e2e.conftest import Start
from tests.e2e.place import Place

SECRETS = {
    "KIRO_API_KEY": "kiro-key-7e2d1ab",
    "SORTIE_SERVER_AUTH_TOKEN": "server-token-7e2d1ab",
    "SORTIE_TRACKER_API_KEY": "tracker-token-7e2d1ab",
}
NEEDLE = "7e2d1ab"
PAGES = ("/", "/issues/A", "/issues/A?as=pieces", "/lists/running", "/runs", "/api/v1/state")


async def test_people_look_and_steer(place: Place, start: Start) -> None:
    """A link from ``sortie open`` signs in once; then a pause, a stop and a retry are buttons.

    What the issue and the agent say of secrets is on no page, and in no answer of the API.
    """
    said = " ".join(SECRETS.values())
    place.add_issue("A", f'say="{said}" hang=1', title=f"<b>Mend</b> {said}")

    async with start(**SECRETS) as daemon:
        await daemon.line("turn.started", issue="A")
        token = {"authorization": f"Bearer {SECRETS['SORTIE_SERVER_AUTH_TOKEN']}"}
        async with httpx.AsyncClient(
            base_url=daemon.url, headers={"origin": daemon.url}
        ) as browser:
            visitor = await browser.get("/")
            refused = await browser.post("/pause")
            link = (await browser.post("/api/v1/sign-in", headers=token)).json()["path"]
            signed_in = await browser.get(link)
            operator = await browser.get("/")
            await browser.post("/pause")
            paused = await browser.get("/")
            await browser.post("/issues/A/stop")
            await daemon.line("run.finished", issue="A")
            await daemon.line("issue.held", issue="A")
            held = await browser.get("/issues/A")
            seen = [(await browser.get(path)).text for path in PAGES]
        async with httpx.AsyncClient(base_url=daemon.url) as stranger:
            again = await stranger.get(link)

    assert "&lt;b&gt;Mend&lt;/b&gt; *** *** ***" in visitor.text
    assert 'method="post"' not in visitor.text
    assert refused.status_code == 401
    assert (signed_in.status_code, again.status_code) == (200, 403)
    assert 'href="/issues/A/stop?from=board"' in operator.text
    assert "<strong>Paused</strong>" in paused.text
    assert "<strong>held</strong>" in held.text
    assert [text for text in (*seen, visitor.text, operator.text) if NEEDLE in text] == []


async def test_what_ended_before_is_shown_after_a_restart(place: Place, start: Start) -> None:
    """Recent runs and charts go back behind the daemon's start, and count nothing twice."""
    place.add_issue("A")
    async with start() as daemon:
        await daemon.line("issue.moved", issue="A", lifecycle="handoff")
        before = await daemon.get("/")
    async with start() as daemon:
        await daemon.ready()
        after = await daemon.get("/")

    for page in (before.text, after.text):
        assert page.count('<tr id="e:') == 1
        assert "▲ 1 succeeded" in page
        assert "polled" in page
