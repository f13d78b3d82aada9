"""How numbers are written for people: counts, credits, tokens, money, durations.

Log, commands, comments and dashboard all write them with these, so that one amount looks the same
everywhere. Programs get numbers, rounded by ``rounded``.
"""

from __future__ import annotations

from typing import overload

_DECIMALS = 6
"""Decimals that mean something; those behind them come from adding floating-point numbers."""

_SMALLEST = 0.0001
"""What is less is said to be less."""


@overload
def rounded(amount: float) -> float: ...
@overload
def rounded(amount: None) -> None: ...
def rounded(amount: float | None) -> float | None:
    """Return an amount without the digits that only come from adding up; None stays."""
    return None if amount is None else round(amount, _DECIMALS)


def number_text(amount: float) -> str:
    """Write a number with its thousands apart; two decimals at most, four where it is below 1.

    As ``12,345``, ``0.25``, ``1.5``, ``0.0123``; what is less than 0.0001 is ``<0.0001``.
    """
    whole = round(amount, _DECIMALS) + 0.0  # no -0
    if whole == int(whole):
        return f"{int(whole):,}"
    if 0 < whole < _SMALLEST:
        return f"<{_SMALLEST}"
    return f"{whole:,.{2 if abs(whole) >= 1 else 4}f}".rstrip("0").rstrip(".")


def dollars_text(amount: float) -> str:
    """Write an amount of money: to the cent, and below a dollar to a hundredth of a cent.

    As ``$1,234.50``, ``$0.25``, ``$0.0123``; what is less than that is ``<$0.0001``.
    """
    whole = round(amount, _DECIMALS) + 0.0  # no -0
    if 0 < whole < _SMALLEST:
        return f"<${_SMALLEST}"
    cents = f"{whole:,.2f}"
    if abs(whole) >= 1:
        return f"${cents}"
    exact = f"{whole:.4f}".rstrip("0")
    return f"${max(exact, cents, key=len)}"


def credits_text(amount: float) -> str:
    """Write credits with their unit, as ``0.25 credits``."""
    text = number_text(amount)
    return f"{text} credit{'' if text == '1' else 's'}"


def tokens_text(amount: float) -> str:
    """Write tokens with their unit, as ``12,345 tokens``."""
    return counted(round(amount), "token")


def counted(count: int, what: str) -> str:
    """Write a count with what is counted, as ``1 run`` or ``12,345 runs``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def bytes_text(count: int) -> str:
    """Write a number of bytes, as ``512 B``, ``1.5 MiB`` or ``20 GiB``."""
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def seconds_text(seconds: float) -> str:
    """Write a limit of time in a sentence, as ``0.5 s`` or ``3,600 s``: as it is set."""
    return f"{number_text(seconds)} s"


def span(seconds: float) -> str:
    """Write a duration that goes on, with two units at most; a negative one counts as none."""
    whole = int(max(0.0, seconds))
    if whole < 60:
        return f"{whole}s"
    minutes, left = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes}m{left:02}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours}h{minutes:02}m"
    days, hours = divmod(hours, 24)
    return f"{days}d{hours:02}h"


def took(seconds: float) -> str:
    """Write how long something took that is over; below a minute to a tenth of a second."""
    tenths = max(0.0, round(seconds, 1))
    return f"{tenths:.1f}s" if tenths < 60 else span(tenths)
