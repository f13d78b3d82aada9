"""``tracker.query_filter`` for GitLab: parameters of its list of issues, as in an address.

GitLab ignores a parameter that it does not know, and lists everything: a misspelt one would have
agents work on all issues. So only known ones are accepted, and none that is the adapter's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from urllib.parse import parse_qsl

Params = tuple[tuple[str, str], ...]

_FILTERS = """
assignee_id assignee_username author_id author_username confidential created_after created_before
due_date epic_id health_status in iteration_id iteration_title labels milestone milestone_id
my_reaction_emoji search weight not[assignee_id] not[assignee_username] not[author_id]
not[author_username] not[iteration_id] not[iteration_title] not[labels] not[milestone]
not[milestone_id] not[weight]
"""
_ACCEPTED = frozenset(_FILTERS.split())

_OWN_FILTERS = """
closed_by_id cursor iids iids[] issue_type non_archived not[iids] order_by page pagination per_page
private_token scope sort state updated_after updated_before with_labels_details
"""
_SET_BY_SORTIE = frozenset(_OWN_FILTERS.split())


def parsed(text: str | None) -> Params:
    """Return the parameters of a filter, in their order; those that are wrong are left out."""
    return tuple((key, value) for key, value in _pairs(text or "") if _flaw(key, value) is None)


def flaws(text: str) -> Iterator[str]:
    """Yield what is wrong with a filter."""
    pairs = _pairs(text)
    if not pairs:
        yield "needs parameters of GitLab's list of issues, such as labels=backend&milestone=v2"
    seen: set[str] = set()
    for key, value in pairs:
        if (flaw := _flaw(key, value)) is not None:
            yield flaw
        elif key in seen:
            yield f'has "{key}" twice, of which GitLab takes one; labels are separated by commas'
        seen.add(key)


def _pairs(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text.strip().removeprefix("?"), keep_blank_values=True)


def _flaw(key: str, value: str) -> str | None:
    if key in _SET_BY_SORTIE:
        return f'has "{key}", which Sortie sets by itself; leave it out'
    if key not in _ACCEPTED:
        close = get_close_matches(key, _ACCEPTED, n=1, cutoff=0.0)[0]
        return f'has "{key:.80}", which GitLab would ignore, listing every issue; nearest: {close}'
    return None if value.strip() else f'has "{key}" without a value'
