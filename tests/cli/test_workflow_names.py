"""Which files several workflows on a command line are, and by which names one is chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from sortie.cli.arguments import Source, Sources, workflow_of
from sortie.cli.parameters import WrongUsage
from sortie.cli.workflow_names import UnnamedWorkflow, are_several, named_workflows


def write(path: Path, text: str = "---\ntracker: {kind: file}\n---\n") -> Path:
    """Write a file, and the directories above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_directory_holds_workflows(tmp_path: Path) -> None:
    """They are named after their directories, or files where several stand in one; a page without
    front matter is none."""
    web = write(tmp_path / "web" / "WORKFLOW.md")
    api = write(tmp_path / "api" / "WORKFLOW.md")
    docs = write(tmp_path / "docs.md")
    ops = write(tmp_path / "ops.md")
    write(tmp_path / "README.md", "# Read me\n")

    assert named_workflows([tmp_path]) == {"api": api, "web": web, "docs": docs, "ops": ops}
    assert are_several([tmp_path])
    assert not are_several([api])
    assert not are_several([tmp_path / "api" / "nothing"])


def test_a_single_file_is_named_after_its_directory(tmp_path: Path) -> None:
    """Whatever the file is called; a file that is named twice counts once."""
    one = write(tmp_path / "team" / "anything.md")

    assert named_workflows([one, tmp_path / "team"]) == {"team": one}


@pytest.mark.parametrize(
    ("files", "word"),
    [
        (("a/x/WORKFLOW.md", "b/x/WORKFLOW.md"), "both named x"),
        (("with space/WORKFLOW.md",), "no name that can stand in an address"),
    ],
)
def test_names_are_told_apart(tmp_path: Path, files: tuple[str, ...], word: str) -> None:
    """A name is in an address and stands for one workflow."""
    paths = [write(tmp_path / file) for file in files]

    with pytest.raises(UnnamedWorkflow, match=word):
        named_workflows(paths)


def test_one_of_several_is_chosen_by_name(tmp_path: Path) -> None:
    """A command for one workflow asks which, and takes its name."""
    api = write(tmp_path / "api" / "WORKFLOW.md")
    write(tmp_path / "web" / "WORKFLOW.md")

    assert workflow_of([tmp_path], Path("api")) == api
    assert Source(argument=tmp_path, option=Path("api")).workflow == api
    with pytest.raises(WrongUsage, match="choose one of the workflows api, web"):
        _ = Source(argument=tmp_path).workflow
    with pytest.raises(WrongUsage, match="nobody is none of the workflows api, web"):
        workflow_of([tmp_path], Path("nobody"))


def test_a_name_alone_is_looked_for_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no file is named so, --workflow takes a workflow of this directory by its name."""
    write(tmp_path / "api" / "WORKFLOW.md")
    write(tmp_path / "web" / "WORKFLOW.md")
    monkeypatch.chdir(tmp_path / "api")
    assert workflow_of((), None) == Path("WORKFLOW.md")
    monkeypatch.chdir(tmp_path)

    write(tmp_path / "docs.md")
    assert workflow_of((), Path("docs.md")) == Path("docs.md")
    assert Sources(argument=[tmp_path]).each().keys() == {"api", "web", tmp_path.name}
