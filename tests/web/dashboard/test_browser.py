"""The dashboard in Debian's Chromium: live, by keyboard, on a phone, in both colour schemes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sortie.web.issue import QuestionView, RunningView
from tests.web.dashboard import states, watched
from tests.web.dashboard.served import Served, World

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium")
PATIENCE = 60_000
"""Milliseconds after which something awaited has gone wrong."""

DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
PAGES = (
    "/",
    "/issues/SHOP-77",
    "/lists/waiting",
    "/lists/all",
    "/lists/watched",
    "/runs",
    "/pause",
    "/issues/nobody",
)
SCRIPT = "<script>window.got = 1</script><img src=x onerror='window.got = 1'>"
CHECKS = (Path(__file__).parent / "page_checks.js").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests here."""
    with playwright.sync_playwright() as running:
        # No sandbox: root, as which continuous integration runs, cannot have one.
        browser = running.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture
def look(chromium: Any, server: Served, world: World) -> Iterator[Any]:
    """Open pages as somebody who has signed in; no page may complain of anything."""
    complaints: list[str] = []

    @contextmanager
    def open_page(path: str = "/", **context: Any) -> Iterator[Any]:
        operator = context.pop("operator", True)
        with chromium.new_context(viewport=context.pop("viewport", DESK), **context) as made:
            made.set_default_timeout(PATIENCE)
            page = made.new_page()
            if operator:
                page.goto(server.url + server.sign_in_path(), wait_until="commit")
                page.wait_for_url(f"{server.url}/")
            page.on("console", lambda message: complaints.append(message.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("dialog", lambda dialog: complaints.append(dialog.message))
            page.goto(server.url + path)
            yield page

    yield open_page
    # What is not there, or was cut off, is what a test asked for.
    wanted = ("404", "ERR_INCOMPLETE_CHUNKED_ENCODING")
    assert [text for text in complaints if not any(word in text for word in wanted)] == []


def first_run(world: World, **changes: object) -> RunningView:
    """Change the first run, and return what it was."""
    first, *rest = world.state.running
    world.state = replace(world.state, running=(replace(first, **changes), *rest))  # type: ignore[arg-type]
    return first


def test_changes_come_by_themselves(look: Any, server: Served, world: World) -> None:
    """A line of output, a new hold and a pause appear without the page being loaded again."""
    with look() as page:
        page.evaluate("window.here = true")
        page.wait_for_selector("#live.on")
        first_run(world, last_message="Now I know")
        held = replace(states.HELD[0], issue_id="new", issue_identifier="SHOP-99", since=states.NOW)
        world.state = replace(world.state, held=(*world.state.held, held), status="paused")
        server.stir()
        page.wait_for_selector("#s\\:run-1 >> text=Now I know")
        page.wait_for_selector("#status >> text=Paused")
        page.wait_for_selector("#controls >> text=Resume")

        assert page.locator("#held-rows tr").first.get_attribute("id") == "h:new"
        assert page.evaluate("window.here")


def test_a_stream_that_breaks_is_taken_up_again(look: Any, server: Served, world: World) -> None:
    """What happened meanwhile is shown when the browser is back."""
    with look() as page:
        page.wait_for_selector("#live.on")
        server.drop_all()
        first_run(world, last_message="While you were away")
        server.stir()

        page.wait_for_selector("#s\\:run-1 >> text=While you were away")
        page.wait_for_selector("#live.on")


def test_an_issue_is_stopped_by_keyboard(look: Any, server: Served, world: World) -> None:
    """Enter opens the question, Escape takes it back, Tab and Enter answer it."""
    with look() as page:
        stop = page.locator("#r\\:run-1 a.danger")
        stop.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog[open]")
        asked = page.locator("#confirm-question").inner_text()
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog[open]", state="detached")
        again = page.evaluate("document.activeElement.href")
        page.keyboard.press("Space")
        page.wait_for_selector("dialog[open]")
        before = list(world.commands)
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.wait_for_selector("[role=status]")

        assert asked == "End the run of SHOP-1 and hold the issue?"
        assert again.endswith("/issues/SHOP-1/stop?from=board")
        assert before == []
        assert world.commands == ["stop SHOP-1"]
        assert "being stopped" in page.locator("[role=status]").inner_text()


def test_an_answer_that_is_typed_stays_while_the_page_changes(look: Any, world: World) -> None:
    """And is sent; with another question the field is empty."""
    asked = QuestionView(
        id="q-1",
        text="Which colour?",
        options=(),
        default=None,
        asked_at=world.state.generated_at,
        deadline=None,
        wants_option=False,
    )
    world.question = asked
    with look("/issues/SHOP-77") as page:
        page.locator("textarea").type("Blue")
        world.question = replace(asked, text="Which colour, please?")
        page.wait_for_selector("#question >> text=please")
        page.keyboard.type(" it is")
        kept = page.locator("textarea").input_value()
        page.get_by_role("button", name="Answer").click()
        page.wait_for_selector("[role=status]")
        world.question = replace(asked, id="q-2", text="And the roof?")
        page.wait_for_selector("#question >> text=roof")
        after = page.locator("textarea").input_value()

    assert (kept, after) == ("Blue it is", "")
    assert world.commands == ["answer SHOP-77: Blue it is by an operator (dashboard)"]


def test_who_is_on_a_button_stays_on_it(look: Any, server: Served, world: World) -> None:
    """A row that is replaced keeps the focus, and so does one that moves."""
    with look() as page:
        page.wait_for_selector("#live.on")
        page.locator("#r\\:run-2 a.danger").focus()
        second = replace(world.state.running[1], turn=7)
        world.state = replace(world.state, running=(second, *world.state.running[2:]))
        server.stir()
        page.wait_for_selector("#r\\:run-2 >> text=7 of 8")
        page.wait_for_selector("#r\\:run-1", state="detached")

        assert page.evaluate("document.activeElement.href").endswith(
            "/issues/SHOP-2/stop?from=board"
        )


def test_scripts_in_texts_do_nothing(look: Any, server: Served, world: World) -> None:
    """Neither those that the page came with, nor those that came live."""
    first_run(world, title=SCRIPT, last_message=SCRIPT)
    with look() as page:
        page.wait_for_selector("#live.on")
        first_run(world, title=SCRIPT, last_message=f"again {SCRIPT}", host=SCRIPT)
        server.stir()
        page.wait_for_selector("#s\\:run-1 >> text=again")

        assert page.evaluate("window.got") is None
        assert page.locator("main img").count() == 0


def test_hundreds_of_runs_stay_usable(look: Any, server: Served, world: World) -> None:
    """With 200 runs and 2,000 waits everything is on the page or one link away, and live."""
    world.state = states.state(runs=200, waits=2000)
    with look() as page:
        page.wait_for_selector("#live.on")
        said = tuple(replace(run, last_message="all at once") for run in world.state.running)
        world.state = replace(world.state, running=said)
        server.stir()
        page.wait_for_selector("#running-rows tr:nth-child(200) >> text=all at once")
        page.click("h2:has-text('Waiting') a")
        page.click("text=Next >> nth=0")

        assert page.locator("h1").inner_text() == "Waiting 101 to 200 of 2,000"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_read_it(look: Any, server: Served, world: World, scheme: str) -> None:
    """Contrast is that of WCAG AA, names and headings are there, and a phone needs no scrolling."""
    world.state = watched.with_watched(states.troubled(world.state))
    world.watched = world.state.watched[0]
    work = states.delivered()
    wide = replace(work, files=(*work.files, replace(work.files[0], path=f"src/{'x' * 200}.py")))
    world.runs = [replace(states.ended(0, "over-1"), delivery=wide)]
    world.diff = f"{states.DIFF}+{'wide ' * 100}\n"
    found = {}
    with look(color_scheme=scheme, reduced_motion="reduce") as page:
        for path in (*PAGES, "/issues/over-1"):
            page.set_viewport_size(DESK)
            page.goto(server.url + path)
            faults = page.evaluate(f"{CHECKS}; [...faintTexts(), ...withoutName(), ...headings()]")
            page.set_viewport_size(PHONE)
            if (much := page.evaluate("document.documentElement.scrollWidth - innerWidth")) > 0:
                faults.append(f"{much} pixels too wide for a phone")
            found[path] = faults

    assert found == {path: [] for path in found}


def test_watched_pull_requests_come_and_go(look: Any, server: Served, world: World) -> None:
    """Their section is there while anything is watched, and hidden before and behind that."""
    quiet = world.state
    with look() as page:
        page.wait_for_selector("#live.on")
        before = page.locator("#watched").is_visible()
        world.state = watched.with_watched(quiet)
        server.stir()
        page.wait_for_selector("#watched-rows tr:nth-child(12) >> text=over")
        shown = page.locator("#watched").is_visible()
        world.state = quiet
        server.stir()
        page.wait_for_selector("#watched", state="hidden")

    assert (before, shown) == (False, True)


def test_the_keyboard_goes_everywhere(look: Any) -> None:
    """The first stop skips to the content, and whoever is somewhere sees it."""
    with look() as page:
        page.keyboard.press("Tab")
        first = page.evaluate("document.activeElement.textContent")
        page.keyboard.press("Enter")
        skipped = page.evaluate("document.activeElement.id")
        unseen = page.evaluate(f"{CHECKS}; stopsWithoutOutline()")

    assert (first, skipped) == ("Skip to the content", "main")
    assert unseen == []
