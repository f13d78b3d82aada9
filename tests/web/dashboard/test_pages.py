"""Pages as they are sent: whole without JavaScript, safe, and without anybody's secrets."""

from __future__ import annotations

import builtins
import dataclasses
import errno
import io
import os
import re

import httpx
import pytest
from jinja2 import Environment
from msgspec.structs import replace

from sortie.model.times import rfc3339
from sortie.web.dashboard.activity import HandedOff, PollView
from sortie.web.dashboard.formats import issue_path
from sortie.web.dashboard.issue_lists import ISSUE_LISTS
from sortie.web.dashboard.list_pages import SEARCHED_RUNS
from sortie.web.dashboard.painter import Painter
from sortie.web.health import Health
from sortie.web.issue import IssueView, WorkspaceView
from sortie.web.runs import past_detail
from sortie.web.source import CommandAnswer
from sortie.web.state import RuleSlotsView
from tests.web.dashboard import states, watched
from tests.web.dashboard.served import SECRET, Served, World

PAGES = (
    "/",
    "/runs",
    "/runs?issue=SHOP-1",
    "/lists/running",
    "/lists/waiting",
    "/lists/held",
    "/lists/queued",
    "/lists/blocked?q=nothing+like+this",
    "/lists/all?q=zone&only=queued",
    "/runs?q=SHOP&only=failed",
    "/lists/nothing",
    "/issues/SHOP-77",
    "/issues/nobody",
    "/issues/SHOP-77/stop",
    "/issues/SHOP-77/retry",
    "/pause",
    "/resume",
    "/refresh",
)
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"


def test_no_page_needs_a_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shortage of them keeps nobody from looking, nor the daemon from making its pages."""
    values = {"now": 0.0, "operator": False, "heading": "Nothing", "text": "", "command": ""}

    def no_more(*_args: object, **_options: object) -> object:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    with monkeypatch.context() as shortage:
        shortage.setattr(builtins, "open", no_more)
        shortage.setattr(io, "open", no_more)
        page = Painter(frozenset).page("message.html", [], values | {"back": "/"})

    assert page.startswith(b"<!doctype html>")


def test_templates_are_compiled_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes 0.2 s of processor time, and each workflow of a process has its app."""
    values = {"now": 0.0, "operator": False, "heading": "Nothing", "text": "", "command": ""}

    def page(base: str) -> bytes:
        return Painter(frozenset, base).page("message.html", [], values | {"back": "/"})

    first = page("")
    monkeypatch.delattr(Environment, "compile")
    assert page("") == first
    assert page("/w/shop") != first


def test_the_page_shows_everything_without_javascript(visitor: httpx.Client, world: World) -> None:
    """State, runs, waits, holds with reasons, the backlog, past runs, hosts, slots, charts."""
    page = visitor.get("/").text

    for told in (
        "on 7 issues",
        "SHOP-1</a>",
        "Running tests: 214 passed, 3 failed in tests/upload",
        '<b class="tool">shell</b>',
        '<span class="note">I begin with the uploads</span>',
        'href="https://tracker.example/browse/SHOP-1"',
        "SHOP-1000</a>",
        "after error",
        "handoff failed",
        "which of the two price lists is right?",
        '<span class="rule" title="the rule that decides for it">prices</span>',
        "it is blocked by SHOP-12",
        "<b>38</b> queued",
        "<b>6</b> blocked",
        "of 16 slots, 9 free",
        "41.27",
        "SHOP-200</a>",
        "timed out",
        "it closed the connection: no route to host",
        "no setting names",
        "requests: 4,211 of 5,000 left",
        "webhooks of github: 3 deliveries taken; a change of pull requests was missed at",
        "Runs that ended",
        "Duration of a turn",
        "Credits",
    ):
        assert told in page, told


def test_every_list_leads_to_all_of_it(visitor: httpx.Client, world: World) -> None:
    """The overview shows a part; the rest is a click away, and can be searched there."""
    page = visitor.get("/").text

    for path in (*(f"/lists/{name}" for name in ISSUE_LISTS), "/runs"):
        assert f'href="{path}"' in page, path
        listed = visitor.get(path).text
        assert f'<form class="find" role="search" method="get" action="{path}">' in listed


def listed(page: str) -> list[str]:
    """Return the names of the issues in a list."""
    return re.findall(r'class="name" href="/issues/([^"]+)"', page.partition("<tbody>")[2])


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/lists/held?q=shop-8", ["SHOP-81"]),
        ("/lists/held?only=agent_blocked", ["SHOP-77"]),
        ("/lists/held?q=shop-8&only=agent_blocked", []),
        ("/lists/running?q=ZONE+of+reports+IN", ["SHOP-5"]),
        ("/lists/running?only=build-2", ["SHOP-2", "SHOP-5"]),
        ("/lists/blocked?q=ANSWER+the+five", ["SHOP-5009"]),
        ("/lists/all?q=customers&only=running", ["SHOP-2"]),
        ("/lists/all?q=SHOP-77", ["SHOP-77"]),
    ],
)
def test_a_list_can_be_searched_and_narrowed(
    visitor: httpx.Client, world: World, path: str, names: list[str]
) -> None:
    """By a part of a name or title in any case, and by one value; both together are one of each."""
    page = visitor.get(path)

    assert page.status_code == 200
    assert sorted(listed(page.text)) == names


def test_what_is_searched_is_shown_again(visitor: httpx.Client, world: World) -> None:
    """In the form, in the links to other pages, and as text and not as markup."""
    world.state = dataclasses.replace(
        world.state, waiting=tuple(states.waiting(number) for number in range(301))
    )

    many = visitor.get("/lists/waiting?q=shop&only=retry").text
    odd = visitor.get('/lists/waiting?q="><script>alert(1)</script>').text

    assert "1 to 100 of 101" in many
    assert 'value="shop"' in many
    assert '<option value="retry" selected>retry (101)</option>' in many
    assert 'href="/lists/waiting?q=shop&amp;only=retry&amp;page=2"' in many
    assert "<script>alert" not in odd
    assert "&lt;script&gt;alert" in odd


BADGE = '<span class="rule" title="the rule that decides for it">prices</span>'


def test_past_runs_and_pull_requests_show_their_rule(visitor: httpx.Client, world: World) -> None:
    """As live rows do, on the overview and in lists; what none decides for has no badge."""
    world.state = watched.with_watched(world.state)

    overview = visitor.get("/").text
    runs = visitor.get("/runs").text
    pulls = visitor.get("/lists/watched").text
    every = visitor.get("/lists/all?q=prices").text

    for section in ("ended", "watched"):
        assert BADGE in overview.partition(f'id="{section}-rows"')[2].partition("</tbody>")[0]
    rows = [row for row in runs.split("<tr") if "SHOP-20" in row]
    assert [BADGE in row for row in rows[:5]] == [False, False, True, False, False]
    assert pulls.count(BADGE) == sum(row.rule is not None for row in world.state.watched)
    assert every.count(BADGE) == len(listed(every)) > 1


def test_the_share_of_each_rule_is_shown(visitor: httpx.Client, world: World) -> None:
    """Beside hosts and states; nothing of it where there are no rules."""
    without = visitor.get("/").text
    shares = (
        RuleSlotsView(rule="prices", used=3, guaranteed=2, limit=4, burst_to=6),
        RuleSlotsView(rule="urgent", used=0, guaranteed=0, limit=None, burst_to=None),
    )
    world.state = dataclasses.replace(
        world.state, slots=dataclasses.replace(world.state.slots, by_rule=shares)
    )

    shown = visitor.get("/").text.partition('id="capacity"')[2].partition("</table>")[0]

    assert '<th scope="col">rule</th>' not in without
    prices, more, urgent = shown.partition('<th scope="col">rule</th>')[2].split("<tr>")[1:]
    assert '3<span class="of"> of 4</span>' in prices
    assert "2 guaranteed, up to 6" in more
    assert '<td class="num">0</td><td></td>' in urgent


def test_runs_can_be_narrowed_to_a_rule(visitor: httpx.Client, world: World) -> None:
    """By a choice of the rules of the settings, which is kept on the next page; one that is gone
    can still be asked for."""
    world.runs = [
        dataclasses.replace(states.ended(number), rule=("prices", None, "gone")[number // 2 % 3])
        for number in range(400)
    ]
    without = visitor.get("/runs").text
    shares = tuple(
        RuleSlotsView(rule=name, used=0, guaranteed=0, limit=None, burst_to=None)
        for name in ("prices", "urgent")
    )
    world.state = dataclasses.replace(
        world.state, slots=dataclasses.replace(world.state.slots, by_rule=shares)
    )

    first = visitor.get("/runs?rule=prices").text
    both = visitor.get("/runs?rule=gone&only=cancelled").text
    top = visitor.get("/runs?rule=default").text
    gone = visitor.get("/runs?rule=gone").text
    older = re.findall(r'href="(/runs\?[^"]*before=[^"]*)"', top)[0].replace("&amp;", "&")

    assert 'name="rule"' not in without
    assert '<option value="prices" selected>prices</option>' in first
    assert '<option value="urgent">urgent</option>' in first
    assert '<option value="default">default</option>' in first
    assert listed(first)[:3] == ["SHOP-200", "SHOP-201", "SHOP-206"]
    assert listed(both) == [f"SHOP-{200 + n}" for n in range(400) if n % 6 == 5]
    assert listed(top)[:3] == ["SHOP-202", "SHOP-203", "SHOP-208"]
    assert "rule=default" in older
    assert listed(visitor.get(older).text)[0] == "SHOP-502"
    assert '<option value="gone" selected>gone</option>' in gone
    assert listed(gone)[0] == "SHOP-204"


def test_runs_can_be_searched_behind_the_first_page(visitor: httpx.Client, world: World) -> None:
    """As far back as is looked; from there the link to older ones goes on."""
    world.runs = [states.ended(number) for number in range(3 * SEARCHED_RUNS // 2)]
    world.runs = [dataclasses.replace(run, status="succeeded", error=None) for run in world.runs]
    world.runs[SEARCHED_RUNS + 7] = dataclasses.replace(
        world.runs[0], run_id="the-one", status="stalled"
    )

    first = visitor.get("/runs?only=stalled").text
    older, _ = re.findall(r'href="(/runs\?[^"]*before=[^"]*)"', first)
    second = visitor.get(older.replace("&amp;", "&")).text

    assert listed(first) == []
    assert f"before={world.runs[SEARCHED_RUNS - 1].run_id}" in older
    assert listed(second) == ["SHOP-200"]


def test_trouble_is_said_first(visitor: httpx.Client, world: World) -> None:
    """A pause, a broken workflow with its errors, a tracker at rest, a failed poll."""
    world.state = states.troubled(world.state)
    world.health = Health(ready=False, reasons=("the database cannot be written",))
    world.activity = states.activity(
        poll=PollView(at=states.ago(3), result="error", error="it answered 502")
    )

    page = visitor.get("/").text

    assert "<strong>Paused</strong>" in page
    assert "agent.max_turns: needs a number, not &#39;many&#39;" in page
    assert "it answered 429 Too Many Requests" in page
    assert "the database cannot be written" in page
    assert "poll failed" in page


@pytest.mark.parametrize("path", PAGES)
def test_no_page_needs_what_the_policy_forbids(operator: httpx.Client, path: str) -> None:
    """No inline script, style or handler, nothing from elsewhere; and the policy is sent."""
    answer = operator.get(path)

    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", answer.text)
    assert re.findall(r"<script([^>]*)>", answer.text) == [
        found for found in re.findall(r"<script([^>]*)>", answer.text) if "src=" in found
    ]
    for source in re.findall(r"(?:src|<link[^>]*href)=\"([^\"]*)\"", answer.text):
        assert source.startswith("/static/"), source


@pytest.mark.parametrize("path", PAGES)
def test_visitors_see_no_buttons_but_how_to_sign_in(visitor: httpx.Client, path: str) -> None:
    """Whoever may only look finds no command on any page, and forms for searching only."""
    page = visitor.get(path).text

    assert 'method="post"' not in page
    assert page.count("<form") == page.count('role="search"')
    assert "data-confirm" not in page
    assert "sortie open" in page


def test_operators_have_buttons(operator: httpx.Client, world: World) -> None:
    """Poll, pause, stop and retry stand on the overview; resume only while it is paused."""
    page = operator.get("/").text
    world.state = dataclasses.replace(world.state, status="paused")
    paused = operator.get("/").text

    for path in ("/pause", "/issues/SHOP-1/stop?from=board", "/issues/SHOP-77/retry?from=board"):
        assert f'href="{path}"' in page, path
    assert '<form method="post" action="/refresh">' in page
    assert 'href="/resume"' not in page
    assert 'href="/resume"' in paused
    assert 'href="/pause"' not in paused


@pytest.mark.parametrize(
    ("path", "command", "to"),
    [
        ("/pause", "pause", "/?done=pause"),
        ("/resume", "resume", "/?done=resume"),
        ("/refresh", "refresh", "/?done=refresh"),
        ("/issues/group%2FA-1/stop", "stop group/A-1", "/issues/group%2FA-1?done=stop"),
        ("/issues/A-1/retry?from=board", "retry A-1", "/?done=retry"),
    ],
)
def test_a_button_asks_and_a_post_obeys(
    operator: httpx.Client, world: World, path: str, command: str, to: str
) -> None:
    """The page before it changes nothing; the POST does, and leads back to a word about it."""
    question = operator.get(path)
    before = list(world.commands)
    main = question.text.partition("<main")[2]
    action = re.search(r'<form method="post" action="([^"]+)">', main)
    assert action is not None
    answer = operator.post(action[1])
    after = operator.get(answer.headers["location"])

    assert before == []
    assert world.commands == [command]
    assert (answer.status_code, answer.headers["location"]) == (303, to)
    assert 'role="status"' in after.text


def test_a_command_that_fails_says_why(operator: httpx.Client, world: World) -> None:
    """The sentence of the daemon is shown, with its status."""
    world.answer = CommandAnswer(status=409, message="A-1 is <running>")

    answer = operator.post("/issues/A-1/retry")

    assert answer.status_code == 409
    assert "A-1 is &lt;running&gt;" in answer.text


@pytest.mark.parametrize("path", ["/pause", "/resume", "/refresh", "/issues/SHOP-1/stop"])
def test_nobody_else_can_press_a_button(
    visitor: httpx.Client, operator: httpx.Client, world: World, path: str
) -> None:
    """A POST without a session is refused, and so is one that another site made a browser send."""
    plain = visitor.post(path)
    strange = operator.post(path, headers={"origin": "http://127.0.0.1:1"})
    foreign = operator.post(path, headers={"origin": "https://evil.example"})

    assert [a.status_code for a in (plain, strange, foreign)] == [401, 403, 403]
    assert world.commands == []


def test_texts_cannot_become_markup(operator: httpx.Client, world: World) -> None:
    """Scripts in titles, names, output, reasons and addresses stay texts, on every page."""
    run = dataclasses.replace(
        states.running(1),
        title=SCRIPT,
        issue_identifier=SCRIPT,
        last_message=SCRIPT,
        tool=SCRIPT,
        host=SCRIPT,
        issue_url="javascript:alert(3)",
    )
    held = dataclasses.replace(states.HELD[0], detail=SCRIPT, issue_identifier=SCRIPT)
    world.state = dataclasses.replace(world.state, running=(run,), held=(held,))
    world.title = SCRIPT
    world.said = [states.said(1, SCRIPT)]

    pages = [operator.get(path).text for path in ("/", "/lists/held", "/issues/SHOP-77")]
    pages.append(operator.get(issue_path(SCRIPT)).text)

    for page in pages:
        assert "<script>alert" not in page
        assert "<img" not in page
        assert "javascript:" not in page
        assert "&lt;script&gt;alert(1)" in page


@pytest.mark.parametrize("operators", [False, True])
def test_no_page_holds_a_secret(
    visitor: httpx.Client, operator: httpx.Client, server: Served, world: World, operators: bool
) -> None:
    """One in a title, a name, output, a reason or an address is starred, however it is spelled."""
    client = operator if operators else visitor
    text = f"before {SECRET} after"
    run = dataclasses.replace(
        states.running(1),
        title=text,
        last_message=text,
        issue_url=f"https://tracker.example/{SECRET}",
        tool=text,
    )
    held = dataclasses.replace(states.HELD[0], detail=text)
    world.state = dataclasses.replace(
        world.state,
        running=(run,),
        held=(held,),
        workflow=dataclasses.replace(world.state.workflow, valid=False, errors=(text,)),
    )
    world.title = text
    world.health = Health(ready=False, reasons=(text,))
    long = dataclasses.replace(states.ended(2), error=f"{'x' * 185} {SECRET}")
    world.runs = [long]
    world.activity = states.activity(runs=1)
    world.said = [states.said(1, text)]

    seen = [client.get(path).text for path in (*PAGES, "/issues/SHOP-77?as=pieces")]
    with client.stream("GET", "/live") as stream:
        seen.append(next(line for line in stream.iter_lines() if line.startswith("data:")))

    for page in seen:
        assert "sk-very-secret" not in page
    assert "before *** after" in seen[0]
    assert "SHOP-1</a>" in seen[0]


def test_no_answer_of_the_api_holds_a_secret(visitor: httpx.Client, world: World) -> None:
    """Titles, lines and reasons are starred there too, and the document stays whole."""
    text = f"before {SECRET} after"
    run = dataclasses.replace(states.running(1), title=text, last_message=text)
    world.state = dataclasses.replace(world.state, running=(run,))
    world.title = text
    world.runs = [dataclasses.replace(states.ended(2), error=text)]

    state = visitor.get("/api/v1/state")
    others = [
        visitor.get(path).text
        for path in ("/api/v1/issues/A/explain", "/api/v1/history", "/readyz")
    ]
    with visitor.stream("GET", "/api/v1/events") as stream:
        others.append(next(line for line in stream.iter_lines() if line.startswith("data:")))

    assert state.json()["running"][0]["title"] == "before *** after"
    assert len(state.json()["held"]) == len(states.HELD)
    for answer in (state.text, *others):
        assert "sk-very-secret" not in answer


def test_long_lists_come_by_the_page(visitor: httpx.Client, world: World) -> None:
    """The overview shows the issues that are due first and how many there are; lists have all."""
    world.state = states.state(runs=200, waits=2000)

    board = visitor.get("/").text
    first = visitor.get("/lists/waiting").text
    last = visitor.get("/lists/waiting?page=20").text
    odd = visitor.get("/lists/waiting?page=-1").text

    assert board.count('<tr id="r:') == 200
    assert board.count('<tr id="w:') == 25
    assert "2,000 <small>(25 shown)</small>" in board
    assert "1 to 100 of 2,000" in first
    assert "1,901 to 2,000 of 2,000" in last
    assert "page=21" not in last
    assert odd.count('<tr id="w:') == 100


def test_history_comes_by_the_page(visitor: httpx.Client, world: World) -> None:
    """A page links to the runs before its last one; what cannot be read is told."""
    first = visitor.get("/runs").text
    older = re.search(r'href="(/runs\?before=[^"]+)"', first)
    unknown = visitor.get("/runs?before=unknown")

    assert older is not None
    assert older[1] == f"/runs?before={states.past_id(99)}"
    assert visitor.get(older[1]).status_code == 200
    assert unknown.status_code == 503
    assert "no run unknown is recorded" in unknown.text


def test_an_issue_that_was_handed_off_says_what_there_is_to_look_at(
    visitor: httpx.Client, world: World
) -> None:
    """Title, state, the agent's last words, branch, commits, workspace and image, and no
    word that it is unknown; the overview lists it."""
    run = dataclasses.replace(
        states.ended(1, "over-1"),
        title="Mend <b>it</b>",
        description="It is <script>alert(1)</script>\nbroken.",
        state="Review",
        answer="I mended it.\n\n- <script>",
        branch="over-1",
        head_commit="c0ffee",
        commits=2,
        files_changed=3,
        uncommitted=1,
        handed_off_at=rfc3339(states.ago(60)),
        image="team/tools:7",
        image_digest=f"sha256:{'c0ffee' * 10}beef",
    )
    world.runs = [run]
    world.found = IssueView(
        issue_id="id-o1",
        issue_identifier="over-1",
        title=run.title,
        state=run.state,
        standing="handed_off",
        detail=past_detail(run),
        since=None,
        running=None,
        waiting=None,
        held=None,
        last_failure=None,
        runs=(run,),
        workspace=WorkspaceView(host="build-7", path="/w/over-1"),
        description=run.description,
    )
    moved = HandedOff(
        issue_identifier="over-1",
        title=run.title,
        state="Review",
        at=states.ago(60),
        answer=run.answer,
    )
    world.activity = replace(world.activity, handed_off=(moved,))

    page, board = visitor.get("/issues/over-1"), visitor.get("/").text

    assert page.status_code == 200
    assert "Mend &lt;b&gt;it&lt;/b&gt;" in page.text
    assert "<strong>handed off</strong>" in page.text
    assert "it was handed off at" in page.text
    assert "<code>/w/over-1</code> on build-7" in page.text
    assert "<code>team/tools:7, sha256:c0ffeec0ffee</code>" in page.text
    assert "branch over-1, commit c0ffee: 2 new commits, 3 files changed, 1 not committed" in (
        page.text
    )
    assert "I mended it.\n\n- &lt;script&gt;" in page.text
    assert "It is &lt;script&gt;alert(1)&lt;/script&gt;\nbroken." in page.text
    assert "<summary>Description, as its last run got it</summary>" in page.text
    assert "not with the daemon" not in page.text
    assert "is not known" not in page.text
    assert "/lists/handed" not in board
    row = board.partition('<tr id="o:over-1">')[2].partition("</tr>")[0]
    assert "/issues/over-1" in row
    assert "Review" in row
    assert "I mended it." in row


def test_watched_pull_requests_are_on_the_overview(visitor: httpx.Client, world: World) -> None:
    """Those that need a person first, twelve at most, with links of the web only, and no markup of
    others; each is in the list of all as well."""
    rows = watched.watched(states.NOW)
    bad = dataclasses.replace(
        rows[0], waits_for="<script>alert(1)</script>", pull_request="javascript:alert(1)"
    )
    many = tuple(dataclasses.replace(rows[6], issue_id=f"id-m{number}") for number in range(30))
    world.state = dataclasses.replace(
        world.state,
        watched=(bad, *rows[1:], *many),
        counts=dataclasses.replace(world.state.counts, watched=42),
    )

    board, listed = visitor.get("/").text, visitor.get("/lists/watched?only=needs_person").text
    every = visitor.get("/lists/all?only=watched").text

    section = board.partition('<section id="watched"')[2].partition("</section>")[0]
    assert re.findall('<tr id="p:(id-p[0-9]+)"', section) == [row.issue_id for row in rows]
    assert section.count("<tr id=") == 12
    assert "42 <small>(12 shown)</small>" in section
    assert "<script>" not in section
    assert 'href="javascript' not in section
    assert "runs: checks 1, review 3" in section
    assert 'href="https://forge.example/shop/web/pull/70"' in section
    assert listed.count('<tr id="p:') == 2
    assert every.count('<tr id="a:p:') == 42


def test_with_nothing_watched_there_is_no_word_of_it(visitor: httpx.Client) -> None:
    """Not among the lists; the overview has a section that is hidden while it is empty, and an
    issue's page has none."""
    lists = visitor.get("/lists/all").text

    assert "/lists/watched" not in lists
    assert '<section id="watch" class="watch" hidden></section>' in (
        visitor.get("/issues/SHOP-77").text
    )


def test_the_page_of_an_issue_has_its_pull_request(visitor: httpx.Client, world: World) -> None:
    """What it waits for, its gates, what was answered and what may be had still."""
    world.watched = dataclasses.replace(watched.watched(states.NOW)[0], waits_for="<i>it</i> waits")

    page = visitor.get("/issues/SHOP-77").text
    world.standing = "watched"
    alone = visitor.get("/issues/SHOP-77").text

    section = page.partition('<section id="watch"')[2].partition("</section>")[0]
    assert "<strong>needs a person</strong>" in section
    assert "&lt;i&gt;it&lt;/i&gt; waits" in section
    assert "changes are requested by alice" in section
    assert '<span class="warn-text">review 3 of 3</span>' in section
    assert "<li>check 12 at 0123456789ab</li>" in section
    assert "<li>the failed check &lt;b&gt;ci&lt;/b&gt;</li>" in section
    assert "7 before" in section
    assert "Gates between the issue and a run" in page
    assert "Gates between the issue and a run" not in alone


def test_an_issue_says_how_it_stands(operator: httpx.Client, world: World) -> None:
    """Explanation, gates, ways out, runs, and the transcript of the run that is asked for."""
    world.said = [states.said(1, "line 1"), states.said(2, "line 2")]

    page = operator.get("/issues/SHOP-77").text
    other = operator.get(f"/issues/SHOP-77?run={states.past_id(2)}").text
    strange = operator.get("/issues/SHOP-77?run=nothing").text

    for told in (
        "which of the two price lists is right?",
        "it is held (agent_blocked)",
        "sortie retry SHOP-77",
        "<dt>rule</dt><dd>prices<ul><li>not urgent: it has no label urgent</li></ul></dd>",
        "turn failed",
        "line 2",
        'href="/issues/SHOP-77/retry"',
    ):
        assert told in page, told
    assert re.search(f'id="run:{states.past_id(0)}" aria-current="true"', page)
    assert re.search(f'id="run:{states.past_id(2)}" aria-current="true"', other)
    assert re.search(f'id="run:{states.past_id(0)}" aria-current="true"', strange)


@pytest.mark.parametrize(
    "path",
    [
        "/issues/nobody",
        "/issues/no%2F..%2F..%2Fetc%2Fpasswd",
        "/lists/..%2f",
        "/static/..%2froutes.py",
        "/static/sortie.css",
        "/static/",
        "/nothing",
    ],
)
def test_what_is_not_there_is_404(visitor: httpx.Client, path: str) -> None:
    """Unknown issues, lists and files are not found, whatever path is tried."""
    assert visitor.get(path).status_code == 404


def test_files_of_pages_may_be_kept(visitor: httpx.Client) -> None:
    """Their names tell what is in them, so a browser asks once; pages are never kept."""
    page = visitor.get("/")
    names = set(re.findall(r'"(/static/[^"]+)"', page.text))
    files = [visitor.get(name) for name in names]

    assert len(names) == 3
    assert {f.headers["cache-control"] for f in files} == {"public, max-age=31536000, immutable"}
    assert page.headers["cache-control"] == "no-store"


def test_what_a_run_changes_is_shown_and_harmless(world: World, visitor: httpx.Client) -> None:
    """Branch, pull request, evidence, files and the diff, in colours; and where to review it."""
    run = dataclasses.replace(states.ended(0, "over-1"), delivery=states.delivered())
    world.runs = [run]
    world.found = IssueView(
        issue_id="id-o1",
        issue_identifier="over-1",
        title=run.title,
        state="Review",
        standing="handed_off",
        detail=past_detail(run),
        since=None,
        running=None,
        waiting=None,
        held=None,
        last_failure=None,
        runs=(run,),
    )
    moved = HandedOff(
        issue_identifier="over-1",
        title=run.title,
        state="Review",
        at=states.ago(60),
        pull_request="https://forge.example/team/thing/pulls/7",
        files_changed=2,
        added=12,
        removed=3,
    )
    world.activity = replace(world.activity, handed_off=(moved,))

    page, board = visitor.get("/issues/over-1").text, visitor.get("/").text

    assert "<code>sortie/DEMO-1</code> at <code>0123456789ab</code>" in page
    assert 'href="https://forge.example/team/thing/pulls/7"' in page
    assert "<code>make test</code> exit 0" in page
    assert "<code>src/retry.py</code>" in page
    assert '<span class="removed">-    return 10</span>' in page
    assert '<span class="added">+    # &lt;script&gt;alert(1)&lt;/script&gt;</span>' in page
    assert '<span class="head">--- a/src/retry.py</span>' in page
    assert '<span class="added">+@@ no place</span>' in page
    assert '<span class="removed">---- no header</span>' in page
    assert "1 file changed, 3 insertions" not in page  # the list of files says so
    assert "changes requested" in page
    assert "by claude-code (&lt;i&gt;model&lt;/i&gt;) of 0123456789ab, after 2 rounds" in page
    assert "<code>src/&lt;b&gt;retry&lt;/b&gt;.py:3</code>" in page
    assert "&lt;script&gt;alert(2)&lt;/script&gt; is left over" in page
    assert "and 1 more" in page
    assert "thing#7" in board
    assert "2 files, +12 -3" in board


def test_a_run_that_went_on_with_a_delivery_has_its_diff(
    world: World, visitor: httpx.Client
) -> None:
    """The diff stands with the run that committed it; that of another commit is not shown."""
    old = dataclasses.replace(states.delivered(), head="e" * 40)
    runs = [
        dataclasses.replace(states.ended(n, f"over-{n}"), delivery=work)
        for n, work in enumerate((states.delivered(), old, states.delivered("proven")))
    ]
    world.runs = runs
    world.undiffed = {runs[0].run_id}

    page = visitor.get("/issues/over-1").text

    assert ", delivered" in page
    assert '<span class="removed">-    return 10</span>' in page

    world.undiffed = {runs[0].run_id, runs[2].run_id}
    page = visitor.get("/issues/over-1").text

    assert ", delivered" in page
    assert "return 10" not in page


def test_a_long_diff_is_cut(world: World, visitor: httpx.Client) -> None:
    """To so many lines, and each to so many characters; all of it is a link away."""
    run = dataclasses.replace(states.ended(0, "over-1"), delivery=states.delivered())
    world.runs = [run]
    world.diff = states.DIFF + "".join(f"+{number} {'x' * 1000}\n" for number in range(3000))

    page = visitor.get("/issues/over-1").text

    assert page.count('<span class="added">') < 1500
    assert "x" * 490 in page
    assert "x" * 501 not in page
    assert f'<a href="/api/v1/runs/{run.run_id}/diff">all of it, as text</a>' in page
