"""``sortie help``: the pages that are installed with the program, and the commands' own help."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from sortie.cli.commands import COMMANDS
from sortie.cli.documentation import pages
from sortie.cli.output import emit, emit_line, emit_rich
from sortie.cli.parameters import argument
from sortie.model import SortieError

_DECISIONS = "decisions"


def help(  # noqa: A001  (the command is called so)
    topic: Annotated[
        str | None,
        argument(
            metavar="TOPIC",
            help="A page, such as operating or trackers/github, or a command.",
            completes="topic",
        ),
    ] = None,
) -> int:
    """Show a page of the documentation, or list the pages.

    A page is named by its file, or by the last part of that: github is trackers/github, and 0069
    the decision record of that number. Into a pipe it is printed as it is written, in Markdown.
    """
    known = topics()
    if topic is None:
        for name, page in known.items():
            if not name.startswith(_DECISIONS):
                emit_line(f"{name.ljust(24)}{_title(page)}")
        emit_line(f"{'0001, 0002, ...'.ljust(24)}the decision records")
        return 0
    found = _page_of(topic.removesuffix(".md"), known)
    if found is None:
        return _help_of_command(topic, known)
    _show(found)
    return 0


def topics() -> dict[str, Path]:
    """Return every page by its topic. Raises SortieError where there are none."""
    first = pages()
    if first is None:
        raise SortieError("the pages are not installed with this program")
    folder = first.parent / "docs"
    found = {
        page.relative_to(folder).with_suffix("").as_posix().removesuffix("/README"): page
        for page in folder.rglob("*.md")
    }
    return {"readme": first} | dict(sorted(found.items()))


def _page_of(topic: str, known: dict[str, Path]) -> Path | None:
    if topic in known:
        return known[topic]
    lowered = topic.lower()
    ends = [name for name in known if name.rpartition("/")[2].lower() == lowered]
    if topic.isdigit():
        ends = [name for name in known if name.startswith(f"{_DECISIONS}/{topic.zfill(4)}-")]
    return known[ends[0]] if len(ends) == 1 else None


def _help_of_command(topic: str, known: dict[str, Path]) -> int:
    from sortie.cli.parser import command_function, command_parser

    if topic in COMMANDS:
        emit(command_parser(topic, command_function(topic)).format_help())
        return 0
    words = {name.rpartition("/")[2] for name in known} | known.keys() | COMMANDS.keys()
    near = get_close_matches(topic, sorted(words), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "'sortie help' lists the pages"
    raise SortieError(f"there is no page and no command {topic}; {hint}")


def _title(page: Path) -> str:
    with page.open(encoding="utf-8") as file:
        return next((line[2:].strip() for line in file if line.startswith("# ")), page.stem)


def _show(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if not sys.stdout.isatty():
        emit(text)
        return
    from rich.markdown import Markdown

    emit_rich(Markdown(text))
