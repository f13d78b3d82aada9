"""What git says, as it is told to people."""

from __future__ import annotations

import subprocess

import pytest

from sortie.model.git_urls import parse_git_url
from sortie.workspaces.git_values import (
    GitAccess,
    agent_variables,
    all_in,
    complaint_in,
    known_in,
    valid_branch,
)


def test_what_says_nothing_is_left_out() -> None:
    """Of what git and ssh write about a refused login the reason stays."""
    said = b"""\
Warning: Permanently added 'forge' (ED25519) to the list of known hosts.
git@forge: Permission denied (publickey).
fatal: Could not read from remote repository.

Please make sure you have the correct access rights
and the repository exists.
"""
    assert complaint_in(said) == "git@forge: Permission denied (publickey)."


def test_it_stays_where_there_is_nothing_else() -> None:
    """An error is never empty."""
    assert complaint_in(b"fatal: Could not read from remote repository.\n") == (
        "fatal: Could not read from remote repository."
    )
    assert complaint_in(b"") == "git said nothing"


def test_variables_of_git_are_added_to_those_that_there_are() -> None:
    """What the user's environment configures stays in force."""
    own = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    url = parse_git_url("https://forge.example/team/thing")
    access = GitAccess(username="me", password="secret")

    found = own | agent_variables(url, access, own)

    assert found["GIT_CONFIG_COUNT"] == "3"
    assert [found[f"GIT_CONFIG_KEY_{number}"] for number in range(3)] == [
        "a.b",
        "credential.helper",
        "credential.https://forge.example.helper",
    ]


def test_only_a_line_feed_ends_a_line() -> None:
    """A file name may hold what ends lines elsewhere."""
    said = "head c0ffee\nfile 1\t0\ta\u2028head deadbeef\x85commits 9\n"

    assert known_in(said)["head"] == "c0ffee"
    assert "commits" not in known_in(said)
    assert all_in(said, "file") == ("1\t0\ta\u2028head deadbeef\x85commits 9",)


@pytest.mark.parametrize(
    "text",
    [
        "sortie/" + "\u8ab2\u984c" * 100,
        "sortie/" + "a" * 188 + ".locked",
        "sortie/" + "a" * 192 + "/.b",
        "sortie/\ud800",
    ],
)
def test_a_long_name_is_cut_to_one_that_git_takes(text: str) -> None:
    """A part of it is the name of a file, with ".lock" behind it, in bytes."""
    name = valid_branch(text)

    assert max(len(part.encode()) for part in name.split("/")) <= 200
    subprocess.run(["git", "check-ref-format", "--branch", name], check=True, capture_output=True)


def test_head_is_no_branch() -> None:
    """Git refuses a branch of that name."""
    with pytest.raises(ValueError, match="leaves no name"):
        valid_branch("HEAD")
