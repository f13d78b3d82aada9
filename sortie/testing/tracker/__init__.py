"""The conformance kit for trackers: what every adapter promises, tried with a tracker of yours.

Write a ``Rig`` that opens your tracker and changes its issues as people would, and a test::

    @pytest.mark.parametrize("name", CHECKS)
    async def test_my_adapter(name, tmp_path):
        async with open_my_rig(tmp_path) as rig:
            verdict = await CHECKS[name].verdict(rig)
        assert verdict.status is not Status.FAILED, verdict.reason

What a tracker does not declare as a ``Capability``, and what its rig cannot do, is not tried.
"""

from sortie.testing.checks import CheckVerdict, Status
from sortie.testing.tracker import people as _people
from sortie.testing.tracker import reading as _reading
from sortie.testing.tracker import trouble as _trouble
from sortie.testing.tracker import writing as _writing
from sortie.testing.tracker.rig import (
    CHECKS,
    OPTIONAL_FIELDS,
    STATES,
    THEN,
    ConvertsTexts,
    LosesAnswers,
    OpenRig,
    Rig,
    RulesPeople,
    context_of,
    make_issue,
)

assert _people, _reading
assert _writing
assert _trouble

__all__ = [
    "CHECKS",
    "OPTIONAL_FIELDS",
    "STATES",
    "THEN",
    "ConvertsTexts",
    "LosesAnswers",
    "OpenRig",
    "Rig",
    "RulesPeople",
    "Status",
    "CheckVerdict",
    "context_of",
    "make_issue",
]
