"""A real Prometheus beside a running daemon, set up with what is shipped."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL
from tempfile import TemporaryFile
from urllib.parse import urlsplit

import httpx
import trio
import yaml

from tests.deploy.prometheus import ALERTS, DEPLOY, dashboard, with_prometheus
from tests.e2e.conftest import Start
from tests.e2e.place import PATIENCE, Json, Place
from tests.e2e.reviewed import reviewed_place
from tests.forges.service import TOKEN
from tests.ports import free_port

OF_OTHERS = ("sortie_lease_", "sortie_standby", "sortie_notifications_")
"""Metrics of daemons whose rows are on a PostgreSQL server, or whose settings name targets."""


class Prometheus:
    """What a running Prometheus is asked."""

    def __init__(self, url: str) -> None:
        self._client = httpx.AsyncClient(base_url=url, trust_env=False, timeout=PATIENCE)

    async def get(self, path: str, **parameters: str) -> Json:
        """Return the data of an answer; None where there is no answer yet."""
        try:
            answer = await self._client.get(f"/api/v1/{path}", params=parameters)
        except httpx.TransportError:
            return None
        if answer.status_code == 503:  # it still starts
            return None
        assert answer.status_code == 200, answer.text
        return answer.json()["data"]

    async def query(self, expression: str) -> list[float]:
        """Return the values of a query now."""
        found = await self.get("query", query=expression)
        return [float(each["value"][1]) for each in found["result"]] if found else []

    async def until(self, expression: str) -> None:
        """Wait until a query has a result."""
        with trio.fail_after(PATIENCE):
            while not await self.query(expression):
                await trio.sleep(0.1)


@asynccontextmanager
async def prometheus(root: Path, target: str) -> AsyncIterator[Prometheus]:
    """Run one in a directory with the shipped configuration, but for address and haste."""
    settings = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    settings["global"] = {"scrape_interval": "250ms", "evaluation_interval": "250ms"}
    settings["rule_files"] = [str(DEPLOY / name) for name in settings["rule_files"]]
    (job,) = settings["scrape_configs"]
    job["static_configs"] = [{"targets": [target]}]
    root.mkdir()
    (root / "prometheus.yml").write_text(yaml.safe_dump(settings))
    port = free_port()
    with TemporaryFile() as said:
        process = await trio.lowlevel.open_process(
            [
                "prometheus",
                "--config.file=prometheus.yml",
                "--storage.tsdb.path=data",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            cwd=root,
            stdin=DEVNULL,
            stdout=said,
            stderr=said,
        )
        try:
            yield Prometheus(f"http://127.0.0.1:{port}")
        except Exception as error:
            said.seek(0)
            error.add_note(said.read().decode(errors="replace"))
            raise
        finally:
            with trio.CancelScope(shield=True):
                process.terminate()
                with trio.move_on_after(10):
                    await process.wait()
                process.kill()
                await process.wait()


@with_prometheus
async def test_every_panel_shows_something(place: Place, start: Start) -> None:
    """Each query of the dashboard has a result, and those about turns have numbers."""
    shares = {"guaranteed": 1, "max_concurrent_agents": 2}
    ruled: list[object] = [{"name": "docs", "when": {"labels": "docs"}, **shares}]
    place.write_workflow(hooks={"before_run": "true"}, rules=ruled)
    board = dashboard()

    async with start() as daemon:
        await daemon.get("/livez")
        async with prometheus(place.root / "prometheus", urlsplit(daemon.url).netloc) as server:
            await server.until('up{job="sortie"} == 1')
            place.add_issue("A", "credits=0.25")
            place.add_issue("B", "exit=1")
            await daemon.line("issue.moved", issue="A", lifecycle="handoff")
            await daemon.line("retry.scheduled", issue="B")
            await server.until("changes(sortie_turn_credits_total[5m]) > 0")
            await server.until('increase(sortie_retries_total{trigger="error"}[5m]) > 0')
            empty, found = [], {}
            for panel in board["panels"]:
                for target in panel.get("targets", ()):
                    expression = target["expr"].replace("$instance", ".*")
                    expression = expression.replace("$__rate_interval", "5m")
                    values = await server.query(expression)
                    if not values and not any(name in expression for name in OF_OTHERS):
                        empty.append((panel["title"], expression))
                    found[panel["title"]] = values
            daemons = await server.get("label/instance/values")
            (rules,) = (await server.get("rules"))["groups"]
            firing = await server.query('ALERTS{alertstate="firing"}')

    assert empty == []
    numbers = {title for title, values in found.items() if not all(map(math.isnan, values))}
    assert {"Length of a turn", "Length of a poll", "Length of a hook", "Free disk"} <= numbers
    assert daemons == [urlsplit(daemon.url).netloc]
    assert [rule["name"] for rule in rules["rules"]] == [rule["alert"] for rule in ALERTS]
    assert {rule["health"] for rule in rules["rules"]} == {"ok"}
    assert firing == []


SHOWS_NOTHING = {
    "Self-reviews": "there is no block self_review",
    "Rescued work": "all work was pushed",
    "Failed errands": "all of them could be done",
}
"""Panels of the row whose series stay at 0 in the test below, and why."""


@with_prometheus
async def test_panels_of_delivery_follow_a_pull_request(place: Place, start: Start) -> None:
    """From the first commit over a failed check to the merge, each panel of the row shows more than
    0, and the pull request is counted while it is watched."""
    board = dashboard()
    titles = [panel["title"] for panel in board["panels"]]
    row = board["panels"][titles.index("Delivery") + 1 : titles.index("Machine")]
    peaks = {
        panel["title"]: " + ".join(
            f"sum({target['expr'].replace('$instance', '.*')})" for target in panel["targets"]
        )
        for panel in row
    }

    with reviewed_place(place, "gitea") as reviewed:
        reviewed.write(verify={"commands": ["test -e README"]})
        async with start(FORGE_TOKEN=TOKEN) as daemon:
            await daemon.get("/livez")
            async with prometheus(place.root / "prometheus", urlsplit(daemon.url).netloc) as server:
                await server.until('up{job="sortie"} == 1')
                await server.until("sortie_watched_pull_requests == 0")
                place.add_issue("T-1")
                request = await reviewed.opened("T-1")
                await server.until(f"{peaks.pop('Watched pull requests')} == 1")
                first = reviewed.head("T-1")
                reviewed.service.set_check(request.branch, "ci", "failure")
                await reviewed.until(lambda: reviewed.head("T-1") != first)
                reviewed.service.set_check(reviewed.head("T-1"), "ci", "success")
                reviewed.approve("T-1")
                await daemon.line("watch.ended", result="merged")
                await server.until("sortie_watched_pull_requests == 0")
                for title in peaks.keys() - SHOWS_NOTHING:
                    await server.until(f"{peaks[title]} > 0")
                zeros = [await server.query(peaks[title]) for title in SHOWS_NOTHING]

    assert zeros == [[0.0]] * len(SHOWS_NOTHING)
