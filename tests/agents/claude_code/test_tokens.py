"""What was used: from messages as they come, and from results, which know more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.agents.claude_code.tokens import TokenLedger
from sortie.config.token_rates import TokenRates
from sortie.model.turns import Usage
from sortie.worker.usage import UsageIncrements, UsageMeter


def message(fresh: int, output: int, read: int = 0, write: int = 0) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": output,
    }


def model(fresh: int, output: int, cost: float = 0.0, **more: Any) -> dict[str, Any]:
    counts = {"inputTokens": fresh, "outputTokens": output, "costUSD": cost}
    return counts | {"cacheReadInputTokens": 0, "cacheCreationInputTokens": 0} | more


def used(total: int, output: int, read: int = 0, write: int = 0, name: str | None = "m") -> Usage:
    return Usage(
        input_tokens=total,
        output_tokens=output,
        cached_tokens=read,
        cache_write_tokens=write,
        model=name,
        cumulative=True,
    )


def cost(dollars: float) -> Usage:
    return Usage(cost=dollars, currency="USD", cumulative=True)


def test_messages_add_up() -> None:
    """Input holds what came from the cache and went to it; the sums go on over messages."""
    ledger = TokenLedger()

    told = [
        ledger.message("a", "m", message(10, 5, read=100, write=20)),
        ledger.message("b", "m", message(1, 2, read=130)),
    ]

    assert told == [used(130, 5, 100, 20), used(261, 7, 230, 20)]


def test_a_message_counts_once_with_the_most_that_was_told() -> None:
    """Each of its blocks comes with its usage again, and its end with its last count."""
    ledger = TokenLedger()

    told = [
        ledger.message("a", "m", message(100, 1)),
        ledger.message("a", "m", message(100, 1)),
        ledger.more("a", {"output_tokens": 33}),
        ledger.message("a", "m", message(100, 1)),
        ledger.more("nobody", {"output_tokens": 33}),
    ]

    assert told == [used(100, 1), None, used(100, 33), None, None]


def test_each_model_is_counted_for_itself() -> None:
    """A variant's name counts as its model."""
    ledger = TokenLedger()
    ledger.message("a", "big[1m]", message(10, 1))

    assert ledger.message("b", "small", message(5, 2)) == used(5, 2, name="small")
    assert ledger.message("c", "big", message(10, 1)) == used(20, 2, name="big")


def test_a_result_adds_what_messages_did_not_tell() -> None:
    """Output tokens and requests of subagents and helpers, and the cost."""
    ledger = TokenLedger()
    ledger.message("a", "m", message(100, 1))

    told = list(ledger.result({"m": model(400, 80, 0.5), "small": model(7, 3, 0.25)}, None))

    assert told == [used(400, 80), used(7, 3, name="small"), cost(0.75)]


def test_costs_and_tokens_go_on_over_results() -> None:
    """Each result is about what came since the one before."""
    ledger = TokenLedger()
    list(ledger.result({"m": model(100, 10, 0.5)}, None))
    ledger.message("b", "m", message(50, 1))

    assert list(ledger.result({"m": model(50, 20, 0.25)}, None)) == [used(150, 30), cost(0.75)]
    assert list(ledger.result({}, message(0, 0))) == []


def test_a_result_that_tells_too_little_takes_nothing_back() -> None:
    """An error's may be empty."""
    ledger = TokenLedger()
    ledger.message("a", "m", message(100, 7))

    assert list(ledger.result({"m": model(0, 0, 1.0)}, message(0, 0))) == [cost(1.0)]
    assert ledger.message("b", "m", message(1, 1)) == used(101, 8)


@pytest.mark.parametrize("unknown", [None, "0.5", -1, float("nan"), True])
def test_a_cost_that_is_not_told_is_not_zero(unknown: object) -> None:
    """Where that of one model is unknown, that of all of them is."""
    models = {"m": model(1, 2, 0.5), "n": model(3, 4) | {"costUSD": unknown}}

    assert list(TokenLedger().result(models, None)) == [used(1, 2), used(3, 4, name="n")]
    assert list(TokenLedger().result({"m": {"inputTokens": 0}}, None)) == []


def test_without_models_the_sum_of_a_result_counts() -> None:
    """It is told of the model that answered last; the cost is unknown."""
    ledger = TokenLedger()
    ledger.message("a", "m", message(100, 1))

    assert list(ledger.result(None, message(100, 20))) == [used(100, 20)]
    assert list(TokenLedger().result(None, message(5, 6))) == [used(5, 6, name=None)]
    assert list(TokenLedger().result(None, None)) == []


@pytest.mark.parametrize(
    "models",
    [
        {"us.vendor.m-v1:0": model(150, 20, 0.5)},
        {"other": model(150, 20, 0.5), "tiny": {"inputTokens": 0}},
        {"vendor/m": model(150, 20, 0.5, canonicalModel="m")},
        {"m[1m]": model(150, 20, 0.5)},
    ],
)
def test_no_token_counts_twice_under_two_names(models: Mapping[str, Any]) -> None:
    """A provider may name a model differently in messages and in results."""
    ledger, increments, meter = TokenLedger(), UsageIncrements(), UsageMeter(TokenRates({}))
    first = ledger.message("a", "m", message(100, 1))
    assert first is not None

    for usage in (first, *ledger.result(models, None)):
        meter.add(increments.of(usage))

    assert meter.spent.tokens == 170


def test_a_turn_without_a_result_is_settled() -> None:
    """What a killed turn told counts, and the next turn's result is about that one alone."""
    ledger = TokenLedger()
    ledger.message("a", "m", message(100, 1))
    ledger.settle()
    ledger.message("b", "m", message(10, 1))

    assert list(ledger.result({"m": model(10, 9)}, None)) == [used(110, 10), cost(0.0)]


NUMBERS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 2**70),
    st.floats(),
    st.text(max_size=3),
    st.lists(st.integers(), max_size=1),
)
NAMES = st.sampled_from(["m", "m[1m]", "n", "", "x" * 300])
USAGES = st.dictionaries(
    st.sampled_from([*message(0, 0), *model(0, 0), "canonicalModel"]), NUMBERS, max_size=6
)
STEPS = st.one_of(
    st.tuples(st.just("message"), st.sampled_from(["a", "b", ""]), NAMES, USAGES),
    st.tuples(st.just("result"), st.dictionaries(NAMES, USAGES | NUMBERS, max_size=3)),
    st.tuples(st.just("sum"), USAGES),
    st.tuples(st.just("settle")),
)


@given(st.lists(STEPS, max_size=12))
def test_sums_never_fall_and_are_amounts(steps: list[Any]) -> None:
    """Whatever an agent tells, the worker can count it."""
    ledger, increments = TokenLedger(), UsageIncrements()
    totals: dict[str, int] = {}

    for step in steps:
        match step:
            case ("message", message_id, name, usage):
                one = ledger.message(message_id, name, usage)
                told = [] if one is None else [one]
            case ("result", models):
                told = list(ledger.result(models, None))
            case ("sum", usage):
                told = list(ledger.result(None, usage))
            case _:
                ledger.settle()
                told = []
        for usage in told:
            increments.of(usage)
            if usage.input_tokens is not None:
                name = f"{usage.model}"
                assert usage.input_tokens >= totals.get(name, 0)
                totals[name] = usage.input_tokens


def test_the_number_of_models_is_bounded() -> None:
    """Names without end do not fill the memory."""
    ledger = TokenLedger()

    names = {ledger.message(str(n), f"m{n}", message(1, 1)) for n in range(500)}

    assert len({usage.model for usage in names if usage}) == 101


def test_two_names_of_one_model_add_up() -> None:
    """A result may count a model twice, as with and without a longer context; messages may have
    told less than both."""
    ledger = TokenLedger()
    ledger.message("a", "m", message(150, 0))
    models = {"m": model(100, 0), "m[1m]": model(80, 0)}

    told = [usage for usage in ledger.result(models, None) if usage.model]

    assert told == [used(180, 0)]


def test_two_models_with_other_names_in_messages_are_counted_once() -> None:
    """What messages told of one is not taken from the other's count twice."""
    ledger = TokenLedger()
    ledger.message("a", "x", message(100, 0))
    ledger.message("b", "y", message(50, 0))

    list(ledger.result({"p/x": model(100, 0), "p/y": model(80, 0)}, None))
    sums = ledger.result({name: model(0, 0) for name in ("x", "y", "p/x", "p/y")}, None)

    assert list(sums) == [cost(0.0)]
    assert sum(counts.fresh for counts in ledger._settled.values()) == 180
