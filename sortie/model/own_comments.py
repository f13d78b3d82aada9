"""How the comments begin that Sortie makes: by that it knows them again in whatever tracker.

Sortie often writes under the account of a person, whose own comments must not be taken for its.
"""

from __future__ import annotations

BEGAN = "Sortie started an agent on this issue"
ENDED = "The run ended after "
FAILED = "The run failed after "
STOPPED = "The run was stopped after "
SAYS = "The agent that works on this issue says:"
ASKS = "The agent of this issue has a question "

_BEGINNINGS = (BEGAN, ENDED, FAILED, STOPPED, SAYS, ASKS)


def is_own(body: str) -> bool:
    """Tell whether a comment is one of Sortie's."""
    return body.lstrip().startswith(_BEGINNINGS)
