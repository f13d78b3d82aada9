"""What a demo tells about itself before and after it ran."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from sortie.cli.demo.agent import DemoAgent
from sortie.cli.demo.directory import ISSUES, WORKFLOW, Demo
from sortie.cli.demo.project import PROJECT
from sortie.cli.output import one_line
from sortie.cli.program import command_name
from sortie.model import SortieError
from sortie.store import HistoryRow

_MOST_RUNS = 1000


class FinalState(Struct, frozen=True, kw_only=True):
    """An issue as it stands in its file."""

    identifier: str
    title: str
    state: str


def introduction(demo: Demo, agent: DemoAgent | None, *, to_the_end: bool) -> Text:
    """Say what was made, who works on it and what happens now."""
    text = Text()
    place = one_line(str(demo.directory))
    if demo.made:
        text.append(f"Made a demo in {place}\n", "bold")
        text.append(f"  {WORKFLOW}  how the issues are worked on: by two agents at once\n")
        text.append(f"  {ISSUES}/      five issues, one file each\n")
        if (demo.directory / PROJECT).exists():
            text.append(f"  {PROJECT}  a repository that gets a branch for each issue\n")
        text.append("\n")
        text.append(
            "DEMO-5 has priority 1 and goes first. DEMO-4 waits until the agent of DEMO-3 has "
            "set that issue to Done. "
        )
    else:
        text.append(f"Going on with the demo in {place}\n", "bold")
        text.append("Nothing in it was overwritten. For a fresh one remove it, or name another.\n")
    text.append(_about(agent))
    if not to_the_end:
        text.append(
            f"It runs until you press Ctrl-C. Meanwhile add a file to {place}/{ISSUES} or edit "
            f"{WORKFLOW}: both are seen at once.\n"
        )
    text.append("The log follows on stderr.\n")
    return text


def _about(agent: DemoAgent | None) -> str:
    if agent is None or agent.simulated:
        return "The agents are simulated: no model is asked and nothing is spent.\n"
    return (
        f"The agents are real: {one_line(agent.program)} ({agent.kind}) asks its model, and its "
        "provider charges for that.\nAn agent that may not close DEMO-3 leaves it for review; set "
        "its state to Done yourself, and DEMO-4 goes.\n"
    )


def conclusion(demo: Demo) -> tuple[Text, Table, Text]:
    """Show where every issue stands, and say how to look closer."""
    runs = _runs(demo)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("issue", no_wrap=True)
    table.add_column("title")
    table.add_column("state", no_wrap=True)
    table.add_column("runs", justify="right")
    table.add_column("last run", no_wrap=True)
    for issue in final_states(demo.directory / ISSUES):
        own = [run for run in runs if run.issue == issue.identifier]
        last = own[0].status.value if own else ""
        cells = (issue.identifier, issue.title, issue.state, str(len(own)), last)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    workflow = one_line(shlex.quote(str(demo.workflow)))
    return (
        Text("Where the issues stand now:\n", "bold"),
        table,
        Text(f"\nLook closer: {one_line(command_name())} history --workflow {workflow}"),
    )


def branches(demo: Demo) -> str:
    """Return what the branch of each issue changes, as plain text."""
    from sortie.store.readonly import read_diff_of

    database, seen, parts = str(demo.directory / ".sortie.db"), set[str](), []
    for run in _runs(demo):
        if run.delivery is None or run.issue in seen:
            continue
        if (text := read_diff_of(database, run.run_id)) is not None:
            seen.add(run.issue)
            parts.append(
                f"\n{one_line(f'{run.issue}: {run.title}')} ({run.delivery.branch})\n{text}"
            )
    return "".join(reversed(parts))


def final_states(directory: Path) -> list[FinalState]:
    """Read what the issues' files say; one that cannot be read has the state ``unreadable``."""
    paths = [path for path in directory.glob("*.md") if path.name[0] not in ".#" and path.is_file()]
    return [_final_state(path) for path in sorted(paths)]


def _final_state(path: Path) -> FinalState:
    import frontmatter
    import yaml

    try:
        fields = frontmatter.load(str(path)).metadata
    except (OSError, ValueError, yaml.YAMLError):
        return FinalState(identifier=path.stem, title="", state="unreadable")
    return FinalState(
        identifier=str(fields.get("identifier") or fields.get("id") or path.stem),
        title=str(fields.get("title", "")),
        state=str(fields.get("state", "unreadable")),
    )


def _runs(demo: Demo) -> Sequence[HistoryRow]:
    from sortie.store.readonly import read_history

    try:
        return read_history(str(demo.directory / ".sortie.db"), limit=_MOST_RUNS)
    except SortieError:
        return ()  # the user named another database, or there is none yet
