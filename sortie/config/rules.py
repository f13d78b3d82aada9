"""The keys of a rule that are its own: for which issues it is, and how many at once."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from sortie.config.block import Block
from sortie.config.values import CheckWithSchema, Line, choice, matching, needs, whole
from sortie.model.texts import NOT_ON_A_LINE

DEFAULT_RULE = "default"
"""What people call the top level of the settings, which decides for what no rule matches."""


def _texts(value: Any) -> Any:
    """Accept a text or a list of texts."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple) or not texts:
        raise needs("a text or a list of texts")
    for at, text in enumerate(texts):
        if not isinstance(text, str) or NOT_ON_A_LINE.search(text) or not text.strip():
            wrong: dict[str, Any] = {"what": "needs a text on one line"}
            raise PydanticCustomError(
                "needs", "{what}", wrong | ({"item": at} if isinstance(value, list) else {})
            )
    return tuple(text.strip() for text in texts)


_TEXTS: dict[str, Any] = {
    "oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
}

Texts = Annotated[tuple[str, ...], CheckWithSchema(_texts, shape=_TEXTS)]
"""One text or several, of which one has to fit."""

Name = Annotated[
    Line,
    matching(
        rf"(?!{DEFAULT_RULE}$)[A-Za-z0-9][A-Za-z0-9_-]{{0,63}}",
        f"letters, digits, - and _, at most 64, and not {DEFAULT_RULE}",
    ),
]
"""The name of a rule."""

Number = Annotated[int, whole(-1_000_000, 1_000_000)]


def _numbers(value: Any) -> Any:
    """Accept a list of whole numbers."""
    is_list = isinstance(value, list | tuple) and value
    if not is_list or any(not isinstance(n, int) or isinstance(n, bool) for n in value):
        raise needs("a list of whole numbers")
    return tuple(value)


_NUMBERS: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}


class PriorityCondition(Block):
    """Which priorities a rule is for; an issue without one fits none of them."""

    eq: Number | None = None
    among: Annotated[tuple[int, ...], CheckWithSchema(_numbers, shape=_NUMBERS)] | None = Field(
        None, alias="in"
    )
    lt: Number | None = None
    lte: Number | None = None
    gt: Number | None = None
    gte: Number | None = None

    def includes(self, priority: int | None) -> bool:
        """Tell whether a priority fits all that is said."""
        if priority is None:
            return self == PriorityCondition()
        return (
            (self.eq is None or priority == self.eq)
            and (self.among is None or priority in self.among)
            and (self.lt is None or priority < self.lt)
            and (self.lte is None or priority <= self.lte)
            and (self.gt is None or priority > self.gt)
            and (self.gte is None or priority >= self.gte)
        )

    def bounds(self) -> set[int]:
        """Return the numbers at and beside which the answer may change."""
        named = {self.eq, self.lt, self.lte, self.gt, self.gte, *(self.among or ())} - {None}
        return {number + step for number in named if number is not None for step in (-1, 0, 1)}

    @property
    def words(self) -> str:
        """What it says, as in the file."""
        said = self.model_dump(by_alias=True, exclude_none=True)
        return ", ".join(f"{key} {list(v) if key == 'in' else v}" for key, v in said.items())


class Conditions(Block):
    """What an issue has to be for a rule: all that is named, and one of each list.

    ``labels``, ``identifier`` are globs; ``title`` are words. Case does not matter.
    """

    labels: Texts = ()
    states: Texts = ()
    issue_type: Texts = ()
    priority: PriorityCondition | None = None
    identifier: Texts = ()
    assignee: Texts = ()
    title: Texts = ()
    author: Texts = ()


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise needs("a path in the workspace")
    return path


class StageSettings(Block):
    """What becomes of a stage's conversation and result: the next one may go on with the
    conversation, and is told the text of the ``result`` file of the workspace."""

    conversation: Annotated[Literal["fresh", "continue"], choice("fresh", "continue")] = "fresh"
    result: Annotated[Line, AfterValidator(_inside)] = ".sortie/result.md"


class WrittenRule(Block):
    """The keys of a rule that are its own, and lay no setting over the top level's."""

    name: Name | None = None
    when: Conditions = Conditions()
    prompt: Line | None = None
    hosts: Texts | None = None
    max_concurrent_agents: Annotated[int, whole(1)] | None = None
    guaranteed: Annotated[int, whole(0)] = 0
    burst_to: Annotated[int, whole(1)] | None = None
    stage: StageSettings = StageSettings()
