"""What real agents once wrote, and by hand beside it what Sortie has to make of that.

Where the recordings come from is told in ``recorded/README.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest

from sortie.model.turns import AnswerGiven, ToolEnded
from tests.agents.acp.recordings import FOLDER, PlayedTurn, play

MADE = ("/workspace/made.txt",)
ALLOWED = "allowed by permissions.inside for {} (allow_once)"
THOUGHT = "[thought] let me think"
CODEX_WARNING = (
    "Warning: Model metadata for `mock-model` not found. Defaulting to fallback metadata;"
    " this can degrade performance and cause issues."
)


@dataclass(frozen=True, kw_only=True)
class Said:
    """A turn: its outcome, the lines that were told, tools (name, kind, files, failed),
    permissions (question, kind), tokens in and out, costs, and how full the context was last."""

    outcome: str = "completed"
    messages: tuple[str, ...] = ()
    tools: tuple[tuple[str, str, tuple[str, ...], bool], ...] = ()
    permissions: tuple[tuple[str, str], ...] = ()
    tokens: tuple[tuple[int, int], ...] = ()
    costs: tuple[float, ...] = ()
    share: float | None = None


TABLE: dict[str, tuple[Said, ...]] = {
    # Usage is that of the last call alone, so no tokens; the cost is the conversation's.
    "opencode-tools": (
        Said(
            messages=(THOUGHT, "finished all"),
            tools=(
                ("bash", "execute", ("/workspace",), False),
                ("write", "edit", MADE, False),
                ("edit", "edit", MADE, False),
                ("read", "read", MADE, False),
            ),
            costs=(0.0075,),
            share=500 / 128000,
        ),
        Said(messages=("second turn",), costs=(0.003105,), share=1000 / 128000),
    ),
    # Of the replay nothing is told. What was spent before is not known, so no cost either.
    "opencode-load-after-kill": (Said(messages=("resumed answer",), share=1000 / 128000),),
    # It asks about tools that it has not told of; its tokens stand in _meta.
    "gemini-tools": (
        Said(
            messages=("[thought] ****", THOUGHT, "finished all"),
            tools=(
                ("run_shell_command", "execute", (), False),
                ("write_file", "edit", MADE, False),
                ("replace", "edit", MADE, False),
                ("read_file", "read", MADE, False),
            ),
            permissions=(
                ("execute: echo shell-ran; echo line2", "execute"),
                ("edit: Writing to made.txt: /workspace/made.txt", "edit"),
                ("edit: made.txt: alpha => beta: /workspace/made.txt", "edit"),
            ),
            tokens=((1500, 200),),
        ),
        Said(messages=("second turn",), tokens=((1000, 7),)),
    ),
    # The prompt is never answered; the next one went to another client than ours.
    "gemini-cancel-unanswered": (
        Said(
            outcome="",
            messages=("ok next",),
            tools=(("run_shell_command", "execute", (), True),),
            permissions=(("execute: touch perm2; sleep 43", "execute"),),
        ),
    ),
    # No names of tools; tokens are sums since the process began (the second turn says 2500/207).
    "copilot-tools": (
        Said(
            messages=("Info: /workspace/made.txt", THOUGHT, "finished all"),
            tools=(
                ("execute", "execute", (), False),
                ("edit", "edit", MADE, False),
                ("edit", "edit", MADE, False),
                ("read", "read", MADE, False),
            ),
            permissions=(
                ("execute: d: echo shell-ran; echo line2", "execute"),
                ("edit: Create file: /workspace/made.txt", "edit"),
                ("edit: Edit file: /workspace/made.txt", "edit"),
            ),
            tokens=((1500, 200),),
            share=8920 / 128000,
        ),
        Said(messages=("second turn",), tokens=((1000, 7),), share=9011 / 128000),
    ),
    # The failed turn is an end_turn like the others; what it used counts all the same.
    # The tool that was cut is told of once more: it was counted by the run that began it.
    "copilot-load-after-kill": (
        Said(
            messages=(
                "Warning: 1 tool call(s) had no recorded result at resume. Files or other state may"
                " be partially changed. Completed tool results were retained; unresolved operations"
                " were not automatically retried. Verify the current state before continuing."
                "second",
            ),
            tokens=((100, 20),),
            share=0.07121875,
        ),
    ),
    "copilot-failed-turn": (
        Said(messages=("first fine",), tokens=((100, 20),), share=8665 / 128000),
        Said(
            outcome="turn_failed: Error: 400 no such thing",
            messages=("Error: 400 no such thing",),
            tools=(("execute", "execute", (), False),),
            permissions=(("execute: d: echo hi", "execute"),),
            tokens=((200, 30),),
            share=8774 / 128000,
        ),
        Said(messages=("third fine",), tokens=((1000, 7),), share=8813 / 128000),
    ),
    # Tokens of the turn, cost of the conversation: 0.01908 after the second turn.
    "claude-tools": (
        Said(
            messages=(THOUGHT, "finished all"),
            tools=(
                ("Bash", "execute", (), False),
                ("Write", "edit", MADE, False),
                ("Edit", "edit", MADE, False),
                ("Read", "read", MADE, False),
            ),
            permissions=(
                ("edit: Write made.txt: /workspace/made.txt", "edit"),
                ("edit: Edit made.txt: /workspace/made.txt", "edit"),
            ),
            tokens=((1500, 200),),
            costs=(0.0108,),
            share=560 / 1_000_000,
        ),
        Said(
            messages=("second turn",),
            tokens=((1000, 7),),
            costs=(0.00828,),
            share=1007 / 1_000_000,
        ),
    ),
    # The open permission is taken back, and the tool that it was about fails.
    "claude-cancel-permission": (
        Said(
            outcome="turn_cancelled: the agent says that the turn was cancelled",
            tools=(("Bash", "execute", (), True),),
            permissions=(("execute: touch perm1; timeout 42 tail -f /dev/null", "execute"),),
            tokens=((100, 20),),
            costs=(0.0008,),
            share=120 / 1_000_000,
        ),
        Said(messages=("ok next",), tokens=((100, 20),), costs=(0.0008,), share=120 / 1_000_000),
    ),
    # Edits have no name and no location but in their diff.
    "codex-tools": (
        Said(
            messages=(CODEX_WARNING, THOUGHT, "finished all"),
            tools=(
                ("exec_command", "execute", ("/workspace",), False),
                ("edit", "edit", MADE, False),
                ("edit", "edit", MADE, False),
                ("exec_command", "read", MADE, False),
            ),
            tokens=((1500, 200),),
            share=560 / 258400,
        ),
        Said(messages=(CODEX_WARNING, "second turn"), tokens=((1000, 7),), share=1007 / 258400),
    ),
    # The failed turn is an end_turn with a systemError before it, and no usage.
    "codex-failed-turn": (
        Said(
            outcome="turn_failed: exceeded retry limit, last status: 429 Too Many Requests",
            messages=(CODEX_WARNING, "exceeded retry limit, last status: 429 Too Many Requests"),
        ),
        Said(messages=(CODEX_WARNING, "fine now"), tokens=((100, 20),), share=120 / 258400),
    ),
    # What it says is in the data of the error; until when tells a time of day of no zone.
    "codex-usage-limit": (
        Said(
            outcome="usage_limit: Internal error: You\u2019ve hit your usage limit. Upgrade to Pro"
            " (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to"
            " purchase more credits or try again at 8:01 PM. (usageLimitExceeded) (error -32603 to"
            " session/prompt)",
            messages=(
                CODEX_WARNING.replace("mock-model", "gpt-5"),
                "You\u2019ve hit your usage limit. Upgrade to Pro"
                " (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to"
                " purchase more credits or try again at 8:01 PM.",
            ),
        ),
    ),
    "codex-0.16.0-usage-limit": (
        Said(
            outcome="usage_limit: Internal error: You've hit your usage limit. Upgrade to Pro"
            " (https://chatgpt.com/explore/pro), visit https://chatgpt.com/codex/settings/usage to"
            " purchase more credits or try again at 8:01 PM. (usage_limit_exceeded) (error -32603"
            " to session/prompt)",
            messages=(CODEX_WARNING.replace("mock-model", "gpt-5").removeprefix("Warning: "),),
        ),
    ),
}


def test_every_recording_has_its_row() -> None:
    """None is left out."""
    assert {path.stem for path in FOLDER.glob("*.jsonl")} == set(TABLE)


@pytest.mark.parametrize("name", TABLE)
def test_a_recording_means_what_the_table_says(name: str) -> None:
    """Events, tokens and outcome of each turn; and what our client sends is what was sent."""
    assert [_said(turn) for turn in play(name)] == list(TABLE[name])


@pytest.mark.parametrize("name", TABLE)
def test_the_chunks_make_no_difference(name: str) -> None:
    """However the stream is cut, the same is heard of it."""
    for one, other in pairwise([play(name), play(name, 1), play(name, 4096)]):
        assert one == other


def _said(turn: PlayedTurn) -> Said:
    """Return what was heard, in the table's words; answers are those of the rules."""
    for question, answer in turn.permissions:
        assert answer == ALLOWED.format(question.partition(":")[0])
    return Said(
        outcome=turn.outcome,
        messages=tuple(turn.messages),
        tools=tuple((name, kind or "", files, failed) for name, kind, files, failed in turn.tools),
        permissions=tuple((asked, asked.partition(":")[0]) for asked, _ in turn.permissions),
        tokens=tuple((i or 0, o or 0) for i, o in turn.tokens),
        costs=tuple(turn.costs),
        share=turn.share,
    )


ANSWERS = {
    "claude-tools": ("finished all", "second turn"),
    "codex-tools": ("finished all", "second turn"),
    "copilot-tools": ("finished all", "second turn"),
    "gemini-tools": ("finished all", "second turn"),
    "opencode-tools": ("finished all", "second turn"),
    "opencode-load-after-kill": ("resumed answer",),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("size", [None, 7])
def test_the_last_answer_of_each_turn_is_told(name: str, size: int | None) -> None:
    """Once a turn, whole, and without what the agent itself puts among the model's words."""
    told = [
        [event.text for event in turn.events if isinstance(event, AnswerGiven)]
        for turn in play(name, size)
    ]

    assert told == [[answer] for answer in ANSWERS[name]]


SHELL = "echo shell-ran; echo line2"


@pytest.mark.parametrize(
    ("name", "about", "output"),
    [
        ("claude-tools", SHELL, "shell-ran\nline2"),
        ("codex-tools", SHELL, "shell-ran\nline2\n"),
        ("copilot-tools", SHELL, "shell-ran\nline2\n<shellId: 0 completed with exit code 0>"),
        ("gemini-tools", SHELL, None),  # it tells none of a shell's
        ("opencode-tools", SHELL, "shell-ran\nline2\n"),
    ],
)
def test_what_a_tool_was_given_and_has_said_is_told(
    name: str, about: str, output: str | None
) -> None:
    """A shell's command, and what it has printed."""
    ended = [event for event in play(name)[0].events if isinstance(event, ToolEnded)]

    assert (ended[0].about, ended[0].output) == (about, output)
