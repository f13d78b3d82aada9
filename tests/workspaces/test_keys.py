"""Directory names for identifiers."""

from __future__ import annotations

import os
import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sortie.model import WorkspaceError
from sortie.workspaces import workspace_key
from sortie.workspaces.workspaces import KEY_LIMIT

identifiers = st.text(min_size=1, max_size=40).filter(lambda text: text not in (".", ".."))


@pytest.mark.parametrize(
    ("identifier", "key"),
    [
        ("ABC-123", "ABC-123"),
        ("a.b_c", "a.b_c"),
        ("...", "..."),
        (".git", ".git"),
        ("owner/repo#5", "owner_repo_5-30d479a569071c3d"),
        ("../x", ".._x-d6b96a97d147daaa"),
        ("é", "_-4a99557e4033c353"),
        ("a\0b", "a_b-59b271ae1bbcb1d3"),
        ("{{ 7*7 }}", "___7_7___-965d32918fdc9a7e"),
    ],
)
def test_a_key_is_the_cleaned_identifier_and_a_digest_where_needed(
    identifier: str, key: str
) -> None:
    """Foreign characters become underscores; what was changed carries a digest."""
    assert workspace_key(identifier) == key


@pytest.mark.parametrize("identifier", ["", ".", ".."])
def test_an_identifier_that_names_no_directory_is_refused(identifier: str) -> None:
    """The root itself, its parent and nothing at all are no workspaces."""
    with pytest.raises(WorkspaceError, match="identifier"):
        workspace_key(identifier)


@given(identifiers)
def test_a_key_never_escapes(identifier: str) -> None:
    """A key is one plain part of a path, whatever the identifier is."""
    key = workspace_key(identifier)

    assert re.fullmatch(r"[A-Za-z0-9._-]+", key)
    assert key not in (".", "..")
    assert os.path.dirname(os.path.normpath(f"/root/{key}")) == "/root"


@given(identifiers, identifiers)
def test_different_identifiers_keep_apart(one: str, other: str) -> None:
    """Two identifiers have two directories."""
    assume(one != other)

    assert workspace_key(one) != workspace_key(other)


@given(identifiers)
@example("owner/repo#5")
def test_an_identifier_made_like_a_key_keeps_apart(identifier: str) -> None:
    """Who may name an issue cannot have the workspace of another by that."""
    key = workspace_key(identifier)
    assume(key != identifier)

    assert workspace_key(key) != key


@pytest.mark.parametrize("character", ["a", "ä", "\ud800", "\U0001f600"])
def test_a_long_identifier_gets_a_name_that_a_file_system_takes(character: str) -> None:
    """A megabyte is cut to a name; its end still counts."""
    long = character * (1 << 20)

    keys = {workspace_key(long), workspace_key(long + "b"), workspace_key("a" * KEY_LIMIT)}

    assert len(keys) == 3
    assert max(len(key.encode()) for key in keys) == KEY_LIMIT
