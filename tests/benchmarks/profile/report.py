"""Profiles as tables: rows are parts, and each profiled row has a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tests.benchmarks.profile.profiles import Profile
from tests.benchmarks.report import number

Table = list[tuple[str, ...]]
"""Lines of cells; the first has the headings."""

_LEAST = 0.005
"""Parts that are less than this share of every row are put together."""

_SHOWN_CALLS = 12
_SHOWN_FUNCTIONS = 20


def tables(profiles: Sequence[Profile]) -> list[Table]:
    """Return by part of the program, by part of the machine where that is known, and counts."""
    found = [_amounts("part of the program", profiles, lambda one: one.parts)]
    if any(one.machine for one in profiles):
        found.append(_amounts("what the processor runs", profiles, lambda one: one.machine))
    return [*found, _checks(profiles), _counts(profiles)]


def _amounts(
    what: str, profiles: Sequence[Profile], of: Callable[[Profile], Mapping[str, float]]
) -> Table:
    most: dict[str, float] = {}
    for one in profiles:
        for part, amount in of(one).items():
            most[part] = max(most.get(part, 0.0), amount / one.amount)
    parts = sorted((part for part in most if most[part] >= _LEAST), key=lambda part: -most[part])
    lines: Table = [_headings(what, profiles)]
    lines += [(part, *(_share(of(one).get(part), one) for one in profiles)) for part in parts]
    small = [part for part in most if most[part] < _LEAST]
    if small:
        rest = [sum(of(one).get(part, 0.0) for part in small) for one in profiles]
        cells = (_share(amount, one) for amount, one in zip(rest, profiles, strict=True))
        lines.append((f"{len(small)} smaller ones", *cells))
    sums = (_whole(sum(of(one).values()), one) for one in profiles)
    return [*lines, ("all", *sums)]


def _checks(profiles: Sequence[Profile]) -> Table:
    lines: Table = [_headings("how it was seen", profiles)]

    def line(what: str, of: Callable[[Profile], str]) -> None:
        lines.append((what, *(of(one) for one in profiles)))

    line("nobody looking on", lambda one: _whole(one.amount, one))
    line("with py-spy looking on", lambda one: _whole(one.sampled, one))
    line("the lock's samples, of the clock", lambda one: f"{one.explained:.0%}")
    line("of them in our own lines", lambda one: f"{sum(one.own.values()) / one.amount:.0%}")
    line(
        "ms with the lock, waiting for a program to be executed",
        lambda one: number(one.waiting),
    )
    line("perf's samples, of the clock", lambda one: f"{one.machine_explained:.0%}")
    return lines


def _counts(profiles: Sequence[Profile]) -> Table:
    most: dict[str, float] = {}
    for one in profiles:
        for name, amount in one.counts.items():
            most[name] = max(most.get(name, 0.0), amount)
    plain = [name for name in most if not name.startswith("of them ")]
    calls = sorted((name for name in most if name not in plain), key=lambda name: -most[name])
    lines: Table = [_headings("how often", profiles)]
    lines += [
        (name, *("" if name not in one.counts else number(one.counts[name]) for one in profiles))
        for name in [*plain, *calls[:_SHOWN_CALLS]]
    ]
    return lines


def _headings(what: str, profiles: Sequence[Profile]) -> tuple[str, ...]:
    return (what, *(one.name for one in profiles))


def _share(amount: float | None, one: Profile) -> str:
    return "" if not amount else f"{number(amount)} ({amount / one.amount:.0%})"


def _whole(amount: float, one: Profile) -> str:
    return "" if not amount else f"{number(amount)} {one.unit}"


def as_text(profiles: Sequence[Profile]) -> str:
    """Return the tables in columns, and below them the functions that take most of each row."""
    shown = [*tables(profiles), *map(_functions, profiles)]
    return "\n\n".join(_columns(table) for table in shown)


def _functions(one: Profile) -> Table:
    most = list(one.functions.items())[:_SHOWN_FUNCTIONS]
    return [
        ("function, with what libraries do for it", one.name),
        *((name, _share(amount, one)) for name, amount in most),
    ]


def _columns(table: Table) -> str:
    widths = [max(len(line[column]) for line in table) for column in range(len(table[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    )


def as_markdown(profiles: Sequence[Profile]) -> str:
    """Return the tables as the pages have them."""
    return "\n".join(_marked(table) for table in tables(profiles))


def _marked(table: Table) -> str:
    first, *rest = table
    headings = (first[0], *(f"`{name}`" for name in first[1:]))
    lines = [headings, ("---",) * len(headings), *rest]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
