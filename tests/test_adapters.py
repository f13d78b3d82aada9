"""Adapters are found in the package and in what is installed beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import sortie.agents
from sortie.adapters import Adapters, BrokenAdapter
from sortie.agents import AgentAdapter, AgentAdapters
from sortie.daemon.workflow_file import schemas
from sortie.model import WorkflowError
from sortie.workflow.loader import load

GOOD = """\
from pydantic import BaseModel
from sortie.agents import AgentAdapter

class Settings(BaseModel):
    pass

def adapter(kind, block_name):
    return AgentAdapter(kind=kind, block_name=block_name, block=Settings, default_command="x",
                        env_names=(), create=lambda context: None)

OTHER = adapter("other", "other")
MISNAMED = adapter("somebody", "else")
GREEDY = adapter("greedy", "tracker")
KIRO = adapter("kiro", "mine")
"""


def install(folder: Path, name: str, code: str, *points: str) -> None:
    """Install a package of one module that announces adapters of agents."""
    (folder / f"{name}.py").write_text(code)
    info = folder / f"{name}-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines = "".join(f"{point}\n" for point in points)
    (info / "entry_points.txt").write_text(f"[sortie.agents]\n{lines}")


@pytest.fixture(autouse=True)
def _without_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not find the adapters that are kept as examples, which all other tests may find."""
    examples = str(Path(__file__).with_name("examples"))
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != examples])


def agents() -> Adapters[AgentAdapter]:
    """Look anew for the agents there are."""
    return Adapters("sortie.agents", AgentAdapter)


def test_an_agent_that_another_kind_runs_is_told_with_its_command() -> None:
    """Wherever a kind is named."""
    with pytest.raises(LookupError, match="'opencode'; acp runs it, with the command opencode acp"):
        AgentAdapters("sortie.agents", AgentAdapter).load("opencode")


def test_what_an_installed_package_announces_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a kind as those that are built in; an unknown one is told with all that are known."""
    install(tmp_path, "others", GOOD, "other = others:OTHER")
    monkeypatch.syspath_prepend(tmp_path)

    assert agents().kinds() == tuple(sorted((*agents().built_in, "other")))
    assert agents().load("other").block_name == "other"
    with pytest.raises(LookupError, match=r"no adapter of kind 'robot'; known: .*kiro, other"):
        agents().load("robot")


BROKEN = {
    "fails": "broken 0.1 (broken:X) could not be loaded (RuntimeError: no luck); mend or remove it",
    "gone": "others 0.1 (missing:X) could not be loaded (ModuleNotFoundError: No module named "
    "'missing'); mend or remove it",
    "number": "others 0.1 (others:__name__) gives str, not a sortie.agents.AgentAdapter",
    "misnamed": "others 0.1 (others:MISNAMED) gives an adapter whose kind is 'somebody'",
    "kiro": "it is built in, and others 0.1 (others:KIRO) has it too; remove that",
    "other": "both copies 0.1 (others:OTHER) and others 0.1 (others:OTHER) have it; "
    "remove one of them",
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_adapter_hinders_no_other(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only who asks for its kind is told what is wrong, and with which package."""
    install(tmp_path, "broken", "raise RuntimeError('no\\nluck')", "fails = broken:X")
    install(tmp_path, "copies", "", "other = others:OTHER")
    points = ("gone = missing:X", "number = others:__name__", "misnamed = others:MISNAMED")
    more = ("kiro = others:KIRO", "other = others:OTHER", "greedy = others:GREEDY")
    install(tmp_path, "others", GOOD, *points, *more)
    monkeypatch.syspath_prepend(tmp_path)

    with pytest.raises(BrokenAdapter) as raised:
        agents().load(kind)
    assert str(raised.value) == BROKEN[kind]
    assert set(agents().kinds()) - set(agents().built_in) == {"greedy"}
    assert "kiro" not in agents().kinds()


def problems(folder: Path, kind: str) -> str:
    """Return what is wrong with a workflow that has an agent of that kind."""
    lines = ("tracker: {kind: file, active_states: [A], handoff_state: B}", "file: {path: issues}")
    text = "\n".join(("---", *lines, f"agent: {{kind: {kind}}}", "---", "Work."))
    try:
        load(folder / "WORKFLOW.md", schemas=schemas.__wrapped__(), env={}, content=text.encode())
    except WorkflowError as error:
        return str(error)
    return ""


def test_a_broken_adapter_is_a_located_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is placed where its kind is named, and so is a block's name that is taken."""
    install(tmp_path, "broken", "raise RuntimeError('no luck')", "fails = broken:X")
    install(tmp_path, "others", GOOD, "other = others:OTHER", "greedy = others:GREEDY")

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sortie.agents, "ADAPTERS", agents())

    told = {kind: problems(tmp_path, kind) for kind in ("fails", "greedy", "robot", "other")}

    assert "agent.kind: cannot be used: broken 0.1 (broken:X) could not be loaded" in told["fails"]
    assert "WORKFLOW.md:4:15: agent.kind: " in told["fails"]
    assert "cannot be used: its block 'tracker' is another's name" in told["greedy"]
    assert 'not the text "robot"; known: ' in told["robot"]
    assert "kiro, other" in told["robot"]
    assert told["other"] == ""
