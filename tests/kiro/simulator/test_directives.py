"""What a prompt or the environment may ask for."""

from __future__ import annotations

import pytest

from sortie.kiro.simulator.directives import (
    DirectiveError,
    Directives,
    read_directives,
)


def asked(prompt: str, environment: dict[str, str] | None = None) -> dict[str, object]:
    """Return what differs from the defaults."""
    defaults = vars(Directives())
    found = vars(read_directives(prompt, environment or {}))
    return {name: value for name, value in found.items() if value != defaults[name]}


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("Do it.", {}),
        ("The sim: is no directive", {}),
        ("sim: delay=2", {"delay": 2.0}),
        ("Do\n  sim: exit=1 credits=0.5\nit", {"exit": 1, "credits": 0.5}),
        ("- sim: hang", {"hang": True}),
        ("> sim: hang=off\r\n", {}),
        ("* sim: signal=term\nsim: signal=SIGKILL", {"signal": 9}),
        ("sim: stderr=two words tools=old", {"stderr": "two words", "tools": "old"}),
        ("sim: stderr=\"a exit=1\" status='on hold'", {"stderr": "a exit=1", "status": "on hold"}),
        ("sim: set_state=/a b/X-1.md In Review", {"set_state": "/a b/X-1.md In Review"}),
        ("sim: set_state ../X-1.md Done", {"set_state": "../X-1.md Done"}),
        ("sim: note=0 no_trailer=yes", {"note": False, "no_trailer": True}),
        ("sim: child=double_fork store=none", {"child": "double_fork", "store": "none"}),
    ],
)
def test_directives_of_a_prompt(prompt: str, expected: dict[str, object]) -> None:
    """A line of its own, with or without a list mark, holds one directive or several."""
    assert asked(prompt) == expected


def test_the_environment_beats_the_prompt() -> None:
    """What the operator sets, no issue text can change; other variables mean nothing."""
    environment = {"KIRO_SIM_DELAY": "0", "KIRO_SIM_EXIT": "4", "SIM_EXIT": "5"}

    assert asked("sim: delay=9 exit=1 output=7", environment) == {"exit": 4, "output": 7}


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("sim: dealy=1", "there is no directive 'dealy'"),
        ("sim:", "there is no directive ''"),
        ("sim: hang exit=1", "not of the form name=value"),
        ("sim: delay=soon", "delay: 'soon' is no number"),
        ("sim: delay=-1", "'-1' is no amount from 0 on"),
        ("sim: delay=inf", "'inf' is no amount from 0 on"),
        ("sim: delay=nan", "'nan' is no amount from 0 on"),
        ("sim: output=-1", "'-1' is no whole number from 0 on"),
        ("sim: exit=256", "'256' is no exit status from 0 to 255"),
        ("sim: signal=TERMINATE", "'TERMINATE' is no signal's name"),
        ("sim: hang=maybe", "'maybe' is neither true nor false"),
        ("sim: tools=new-style", "'new-style' is none of none, old, new"),
        ("sim: write=", "write: '' is empty"),
    ],
)
def test_a_wrong_directive_is_told(prompt: str, message: str) -> None:
    """A typing error never passes for a success: the text names place, directive and reason."""
    with pytest.raises(DirectiveError) as caught:
        read_directives(prompt, {})

    assert message in str(caught.value)
    assert str(caught.value).startswith("sim:")


def test_an_unknown_variable_is_told() -> None:
    """The environment is held to the same rules."""
    with pytest.raises(DirectiveError, match="KIRO_SIM_DEALY: there is no directive 'dealy'"):
        read_directives("", {"KIRO_SIM_DEALY": "1"})
