"""The command line of a turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.kiro.headless.arguments import ChatOptions, chat
from sortie.model.invocation import PROMPT_ARGUMENT_LIMIT, Invocation

BASE = ("chat", "--no-interactive", "--wrap", "never")
NAMED = ("--model", "m-1", "--agent", "ops")


@pytest.mark.parametrize(
    ("options", "resume", "expected"),
    [
        (ChatOptions(), False, (*BASE, "--trust-tools=", "Go")),
        (ChatOptions(), True, (*BASE, "--resume", "--trust-tools=", "Go")),
        (ChatOptions(trust_all_tools=True), False, (*BASE, "--trust-all-tools", "Go")),
        (ChatOptions(trust_tools=("read",)), False, (*BASE, "--trust-tools=read", "Go")),
        (
            ChatOptions(model="m-1", agent="ops", trust_tools=("read", "@git/log")),
            True,
            (*BASE, "--resume", *NAMED, "--trust-tools=read,@git/log", "Go"),
        ),
        (
            ChatOptions(verbose=2, require_mcp=True),
            "conversation-1",
            (
                *(*BASE, "-vv", "--resume-id", "conversation-1"),
                *("--require-mcp-startup", "--trust-tools=", "Go"),
            ),
        ),
    ],
)
def test_arguments(options: ChatOptions, resume: bool | str, expected: tuple[str, ...]) -> None:
    """Every option has its place, and exactly one trust mode is named."""
    invocation = chat(options, "Go", resume=resume)

    assert invocation == Invocation(arguments=expected)


def test_both_trust_modes_are_refused() -> None:
    """Options that trust all tools and list some cannot be made."""
    with pytest.raises(ValueError, match="trust_all_tools and trust_tools are mutually exclusive"):
        ChatOptions(trust_all_tools=True, trust_tools=("read",))


@pytest.mark.parametrize("prompt", ["-v", "--help", "-", "- a list\n- of things"])
def test_a_prompt_that_looks_like_an_option_is_marked(prompt: str) -> None:
    """A prompt that begins with a dash stands behind ``--``."""
    invocation = chat(ChatOptions(), prompt, resume=False)

    assert invocation == Invocation(arguments=(*BASE, "--trust-tools=", "--", prompt))


@pytest.mark.parametrize("prompt", ["", " -v", "a\nb", "'\"$(x)`\\", "ü⠋🛠️", "\t", "/quit", "!ls"])
def test_a_prompt_is_passed_as_it_is(prompt: str) -> None:
    """Quotes, line ends, shell characters and any script reach the argument unchanged."""
    invocation = chat(ChatOptions(), prompt, resume=False)

    assert invocation == Invocation(arguments=(*BASE, "--trust-tools=", prompt))


def test_a_prompt_of_96_kib_is_an_argument() -> None:
    """The limit counts bytes of UTF-8, and the limit itself is still allowed."""
    prompt = "ü" * (PROMPT_ARGUMENT_LIMIT // 2)

    invocation = chat(ChatOptions(), prompt, resume=False)

    assert invocation == Invocation(arguments=(*BASE, "--trust-tools=", prompt))


@pytest.mark.parametrize("lead", ["a", "-", "é"])
def test_a_longer_prompt_goes_through_stdin(lead: str) -> None:
    """Over the limit no prompt and no ``--`` stand on the command line."""
    prompt = lead + "ü" * (PROMPT_ARGUMENT_LIMIT // 2)

    invocation = chat(ChatOptions(), prompt, resume=True)

    assert invocation == Invocation(
        arguments=(*BASE, "--resume", "--trust-tools="), stdin=prompt.encode()
    )


def test_what_no_argument_can_hold_is_replaced() -> None:
    """NUL and lone surrogates become U+FFFD, so that no prompt can make the launch fail."""
    invocation = chat(ChatOptions(), "a\0b\udc80c\ud800", resume=False)

    assert invocation.arguments[-1] == "a\ufffdb\ufffdc\ufffd"


@given(prompt=st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_prompt_can_be_passed(prompt: str) -> None:
    """Whatever the prompt, its argument encodes and is free of NUL, and options precede it."""
    invocation = chat(ChatOptions(), prompt, resume=False)

    *options, argument = invocation.arguments
    assert b"\0" not in argument.encode()
    assert tuple(options) == (*BASE, "--trust-tools=") + (("--",) if prompt[:1] == "-" else ())


@pytest.mark.parametrize("prompt", ["private", "private" * PROMPT_ARGUMENT_LIMIT])
def test_a_prompt_does_not_show_in_repr(prompt: str) -> None:
    """A prompt, which may quote anything, does not leak through a logged value."""
    assert "private" not in repr(chat(ChatOptions(), prompt, resume=False))
