"""Clocks that are hours off, and jump while an agent works, as blows of a game."""

from __future__ import annotations

from collections.abc import Callable

import trio

from tests.e2e.walls import Blow, Struck, strike_daemon

FAR = 5.0
"""Hours by which a clock is off."""

BEYOND = 48.0
"""Hours by which a clock is off for which no certificate of the tests is valid."""

_SEEN = 0.5  # seconds, in which something may follow from the jump
_ABSENCE = 8.0

SetClock = Callable[[float], object]
"""What sets a clock: how many hours it is ahead from now on."""


def clock_blows(whose: str, set_clock: SetClock) -> dict[str, Blow]:
    """Return the jumps of a clock, which stays as it is until the next one."""

    def jump(hours: float) -> Blow:
        async def strike(_: Struck) -> None:
            set_clock(hours)
            await trio.sleep(_SEEN)

        return strike

    return {
        f"{whose}'s clock forwards": jump(FAR),
        f"{whose}'s clock backwards": jump(-FAR),
        f"{whose}'s clock right": jump(0.0),
    }


def daemon_clock_blows(set_clock: SetClock) -> dict[str, Blow]:
    """Return the jumps of the daemon's clock, also while no daemon lives."""

    def die(hours: float) -> Blow:
        async def strike(struck: Struck) -> None:
            await strike_daemon(struck)
            set_clock(hours)

        return strike

    return {
        **clock_blows("daemon", set_clock),
        "daemon killed, clock forwards": die(FAR),
        "daemon killed, clock backwards": die(-FAR),
        "daemon killed, clock right": die(0.0),
    }


def distrust(set_clock: SetClock, cut: Callable[[], object]) -> Blow:
    """Return a jump to where no certificate is valid, with all links cut, and back."""

    async def strike(_: Struck) -> None:
        set_clock(-BEYOND)
        await trio.sleep(_SEEN)
        cut()
        await trio.sleep(_ABSENCE)
        set_clock(0.0)

    return strike
