"""A daemon whose forge tells by webhooks what polls would find only in an hour."""

from __future__ import annotations

import httpx

from tests.e2e.conftest import Start
from tests.e2e.place import Place
from tests.e2e.reviewed import reviewed_place
from tests.forges.service import PATH, TOKEN
from tests.ports import free_port
from tests.webhooks.senders import SECRET, body_of, repository, signed

HOUR = 3_600_000


async def test_a_failed_check_is_answered_within_seconds(place: Place, start: Start) -> None:
    """By a delivery that names its pull request; a forged one does nothing, and no secret stands
    anywhere."""
    port = free_port()
    with reviewed_place(place, "github") as reviewed:
        reviewed.write(
            reactions={"interval_ms": HOUR, "max_interval_ms": HOUR},
            webhooks={"port": port, "github": {"secret": "$HOOK_SECRET"}},
        )
        place.add_issue("T-1")
        async with start(FORGE_TOKEN=TOKEN, HOOK_SECRET=SECRET) as daemon:
            request = await reviewed.opened("T-1")
            await daemon.line("watch.began")
            reviewed.service.set_check(request.branch, "ci", "failure", log=b"line 3\n")
            payload = {
                "check_run": {"head_sha": request.branch, "pull_requests": [{"number": 1}]},
                "repository": repository(PATH),
            }
            body = body_of("github", payload)
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                forged = await client.post(
                    "/webhooks/github",
                    content=body,
                    headers=signed("github", body, secret="guessed", event="check_run"),
                )
                taken = await client.post(
                    "/webhooks/github",
                    content=body,
                    headers=signed("github", body, event="check_run"),
                )
                elsewhere = await client.get("/api/v1/state")
            await reviewed.until(lambda: len(reviewed.prompts("T-1")) == 2)
            told = await place.sortie("doctor", FORGE_TOKEN=TOKEN, HOOK_SECRET=SECRET)
            log = str(daemon.log)

    assert (forged.status_code, taken.status_code, elsewhere.status_code) == (401, 202, 404)
    assert "has failed." in reviewed.prompts("T-1")[1]
    assert "webhooks.github" in told.out
    assert "1 delivery taken" in told.out
    assert "1 for their signature" in told.out
    assert SECRET not in log + told.out + told.err
