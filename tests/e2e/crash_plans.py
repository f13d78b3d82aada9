"""What a seed decides of a game with a daemon that is killed: the issues and the kills.

A game sees every kind of card in its first few turns, and in no fixed order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

SLOTS = 8
"""How many agents may work at once; so many issues are there from the beginning."""

SIGNS = (
    "daemon.started",
    "run.started",
    "turn.started",
    "hook.completed",
    "turn.completed",
    "run.finished",
    "retry.scheduled",
    "issue.moved",
    "issue.held",
    "issue.reconciled",
    "workspace.removed",
)
"""Log lines after which a daemon may be killed."""

LINGERING = (
    *("none", "plain", "setsid", "double_fork", "hold_stdout"),
    *("cleared", "cleared", "overwritten", "overwritten"),
)
"""What agents leave behind, in such proportion."""

# Who works prints, and dies of a closed pipe once the daemon is gone; who is silent stays.
WORK = ("delay=0.3", "delay=1.5", "silence=0", "silence=0.3", "silence=1", "silence=2")
ENDS = ("Human Review", "Human Review", "Done", "held")
MOMENTS = ("spawned", "locked", "agent", "agent", "line")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An issue, how it is to end, and before which life of the daemon it arrives."""

    name: str
    directives: str
    end: str
    arrives: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """When a daemon dies: ``after`` seconds from its start, or from the nth line of an event.

    ``locked`` is the moment when it has the workspace root and turns to what others left,
    ``agent`` that in which its nth agent says that it works.
    """

    sign: str
    after: float
    nth: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a seed decides."""

    seed: int
    tasks: tuple[Task, ...]
    kills: tuple[Kill, ...]


def draw(seed: int, *, issues: int, kills: int) -> Plan:
    """Return the plan of a game; the issues arrive until it is nearly over."""
    random = Random(seed)
    children, work, ends = (_dealt(random, cards) for cards in (LINGERING, WORK, ENDS))
    tasks = []
    for number in range(issues):
        directives = [f"child={next(children)}", next(work)]
        if random.random() < 0.3:
            directives.append("ignore_sigterm=1")
        if random.random() < 0.4:
            directives.append(f"fail_first={random.randint(1, 2)}")
        end = next(ends)
        if end == "held":
            directives.append("status=blocked")
        arrives = max(0, number - SLOTS) * kills // issues
        name = f"C-{number}"
        tasks.append(Task(name=name, directives=" ".join(directives), end=end, arrives=arrives))
    moments = _dealt(random, MOMENTS)
    killed = tuple(_kill(random, next(moments)) for _ in range(kills))
    return Plan(seed=seed, tasks=tuple(tasks), kills=killed)


def _dealt(random: Random, cards: Sequence[str]) -> Iterator[str]:
    """Yield all cards in any order, then all again: even a short game sees each of them."""
    while True:
        yield from random.sample(cards, len(cards))


def _kill(random: Random, moment: str) -> Kill:
    uniform, choice = random.uniform, random.choice
    match moment:
        case "spawned":
            return Kill(sign=moment, after=uniform(0.05, 2.5))
        case "locked":
            return Kill(sign=moment, after=uniform(0.0, choice((0.05, 0.1, 0.4))))
        case "agent":
            return Kill(sign=moment, after=uniform(0.0, 1.0), nth=choice((1, 1, 3, 6)))
        case _:
            after = choice((0.0, 0.0, uniform(0.0, 0.1), uniform(0.1, 1.0)))
            return Kill(sign=choice(SIGNS), after=after, nth=choice((1, 1, 3)))
