"""What is known of the stages that an issue has passed."""

from __future__ import annotations

from msgspec import Struct


class PassedStage(Struct, frozen=True, kw_only=True):
    """The stage that an issue has passed last, by the name of its rule.

    ``state`` is the one to which the issue was moved then, and ``result`` the text that the stage
    left for the next one. ``hops`` counts the stages in a row that began where Sortie itself had
    moved the issue, so that no person was between. ``draft`` is the result of the stage that is
    under way, as of its last run. Before the first stage is passed ``rule`` is "".
    """

    rule: str = ""
    state: str = ""
    result: str = ""
    hops: int = 0
    draft: str = ""
