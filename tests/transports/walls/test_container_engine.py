"""What an engine tells of images."""

from __future__ import annotations

import pytest

from sortie.transports.walls.container_engine import digest_of

FOUND = {
    "Id": "sha256:own",
    "RepoDigests": [
        "registry.example:5000/other/tools@sha256:1",
        "docker.io/team/tools@sha256:2",
        "docker.io/team/tools@sha256:3",
    ],
}


@pytest.mark.parametrize(
    ("image", "digest"),
    [
        ("team/tools", "sha256:2"),
        ("docker.io/team/tools:7", "sha256:2"),
        ("registry.example:5000/other/tools", "sha256:1"),
        ("registry.example:5000/other/tools:7", "sha256:1"),
        ("docker.io/team/tools@sha256:3", "sha256:3"),
        ("by-another-name", "sha256:1"),
    ],
)
def test_a_digest_is_that_of_the_registry(image: str, digest: str) -> None:
    """By it the image can be had again; of several names the one that was asked for counts."""
    assert digest_of(FOUND, image) == digest


def test_without_a_registry_it_is_the_engines_own() -> None:
    """Docker knows none of an image that was built or imported."""
    assert digest_of({"Id": "sha256:own", "RepoDigests": []}, "tools") == "sha256:own"
