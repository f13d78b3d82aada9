"""What holds for all pages: lines to type, links, commands, and the repository's own text."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from sortie.cli.commands import COMMANDS
from sortie.cli.parser import command_function, command_parser
from tests.docs.pages import PAGES, ROOT, code_blocks, page, table, without_code, word

DEMO = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/sortie demo --exit-when-idle"
TESTS = "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest -n auto"
README = (ROOT / "README.md").read_text(encoding="utf-8")

LINK = re.compile(r"\]\(([^)\s]+)\)")
LIST_MARK = re.compile(r"^\s*(?:-|\d+\.) ")
SECOND_SENTENCE = re.compile(r"[\w`)*][.] [A-Z`]")
COMMAND = re.compile(r"^(?:\.venv/bin/)?sortie ([a-z]+)((?: \S+)*)$")
# Put together here, so that this file does not hold them itself.
FORBIDDEN = ("/work/" + "main", "/work/" + "shared", ".." + "/shared/", "--index" + "-url")
MANNERED = ("simp" + "ly", "ju" + "st", "rob" + "ust", "seam" + "less", "power" + "ful")


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@cache
def options() -> dict[str, set[str]]:
    """Return the options of every command by its name."""
    return {
        name: {
            option
            for action in command_parser(name, command_function(name))._actions
            for option in action.option_strings
        }
        for name in COMMANDS
    }


@pytest.mark.parametrize("line", [DEMO, TESTS])
def test_the_readme_has_the_line(line: str) -> None:
    """Each of the two lines that a stranger types stands in a code block of its own."""
    assert [content for _, content in code_blocks(README)].count(f"{line}\n") == 1


def test_the_readme_shows_the_issues_of_the_demo() -> None:
    """With the titles that they have."""
    titles = {
        path.stem: re.findall(r'^title: "?(.+?)"?$', path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in (ROOT / "sortie/cli/demo/directory/issues").glob("*.md")
    }

    assert len(titles) == 5
    for name, (title,) in titles.items():
        assert re.search(rf"^{name}  {re.escape(title)} +\w", README, re.MULTILINE)


def test_the_checks_run_the_second_line() -> None:
    """The line for the tests is what ``.ci/run`` runs, but for how much pip says.

    It makes the environment first, and runs the tests in it when they have been compiled.
    """
    text = (ROOT / ".ci/run").read_text(encoding="utf-8").replace(" install -q ", " install ")
    environment, _, test = TESTS.rpartition(" && ")

    lines = text.splitlines()
    assert environment in lines
    assert f'{test} "${{full[@]}}" || failed=1' in lines[lines.index(environment) :]


def test_the_readme_lists_every_command() -> None:
    """The table of commands holds each command, and no other."""
    written = {word(row["command"].split(";")[0]) for row in table(README, "command")}

    assert written == {f"sortie {name}" for name in options()}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    """Every relative link is to a file or directory that is there, and to a heading in it."""
    lost = []
    for link in LINK.findall(without_code(path.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+://", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (
            anchor and anchor not in anchors(target.read_text(encoding="utf-8"))
        ):
            lost.append(link)

    assert lost == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_exist(path: Path) -> None:
    """Every ``sortie COMMAND --option`` on a page is one that the program knows."""
    text = path.read_text(encoding="utf-8")
    lines = [line for _, content in code_blocks(text) for line in content.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", without_code(text))
    known, unknown = options(), []
    for line in lines:
        for part in line.split(" && "):
            found = COMMAND.match(part.strip())
            if found is None:
                continue
            given = {word for word in found[2].split() if word.startswith("-")}
            if found[1] not in known or given - known[found[1]]:
                unknown.append(part)

    assert unknown == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_are_plain(path: Path) -> None:
    """A page praises nothing and has one sentence a line, so that changes are easy to read."""
    text = without_code(path.read_text(encoding="utf-8"))
    found = [word for word in MANNERED if re.search(rf"\b{word}\b", text, re.IGNORECASE)]
    crowded = [
        line
        for line in text.splitlines()
        if not line.startswith("|") and SECOND_SENTENCE.search(LIST_MARK.sub("", line))
    ]

    assert (found, crowded) == ([], [])


def test_decision_records_are_numbered_and_short() -> None:
    """Each record has a number of its own, a status and the three parts, fits on a page, and is in
    the index with its title and status; nothing else is."""
    names = sorted(path.name for path in (ROOT / "docs/decisions").glob("[0-9]*.md"))

    assert len({int(name[:4]) for name in names}) == len(names)
    index: list[str] = []
    for name in names:
        text = page(f"decisions/{name}")
        title, _, status = text.splitlines()[:3]
        assert title.startswith(f"# {name[:4]} "), name
        assert status == "Status: in force.", name
        index.append(f"[{title[2:]}]({name})")
        parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences"], name
        assert len(text.splitlines()) <= 60, name
    assert re.findall(r"^- (.+)$", page("decisions/README.md"), re.MULTILINE) == index


def test_the_architecture_names_every_package() -> None:
    """The table of packages holds each package below ``sortie``, and no other."""
    written = {word(row["package"]) for row in table(page("architecture.md"), "package")}
    known = {f"sortie/{path.parent.name}" for path in (ROOT / "sortie").glob("*/__init__.py")}

    assert written == known


def test_one_word_leads_to_the_file_that_answers() -> None:
    """A word of the index stands in the name of its file, or names what the file defines; of
    others it stands in the names of two at most."""
    rows = table(page("architecture.md"), "question")
    modules = sorted((ROOT / "sortie").rglob("*.py"))

    assert len(rows) >= 12
    for row in rows:
        wanted, there = word(row["word to search"]), ROOT / word(row["file"])
        defines = re.compile(rf"^\s*(?:def|class) \w*{wanted}", re.MULTILINE)
        named = {path for path in modules if wanted in path.stem}
        assert there in named or defines.search(there.read_text(encoding="utf-8")), wanted
        assert len(named - {there}) <= 2, wanted


def test_no_file_tells_of_a_machine() -> None:
    """No file of the repository holds a path of the machine on which it was written."""
    try:
        listed = subprocess.run(
            ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=True, timeout=30
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs git and a checkout")
    found = {
        name
        for name in listed.stdout.decode().split("\0")
        if name and (ROOT / name).is_file()
        for text in [(ROOT / name).read_text(encoding="utf-8", errors="replace")]
        if any(word in text for word in FORBIDDEN)
    }

    assert found == set()
