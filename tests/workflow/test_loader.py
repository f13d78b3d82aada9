"""Whole files: good ones, bad ones, and things that are no files."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from pathlib import Path

import pytest
from pydantic import SecretStr

from sortie.model import WorkflowError
from sortie.workflow import loader
from sortie.workflow.loader import Workflow, load
from sortie.workflow.prompts import Prompt
from tests.config.sample import SCHEMAS
from tests.descriptors import no_descriptor_stays_open
from tests.workflow.sample import ENV, FRONT_MATTER, loaded, problems, write

PROMPT = "Work on {{ issue.title }}."
NO_TRACKER = [
    "W.md:1:1: tracker.kind: is required; known: board, file",
    "W.md:1:1: tracker.active_states: is empty, and so is terminal_states; "
    "name the states in which agents work",
    "W.md:1:1: warning: tracker.handoff_state: is not set, and agent.max_sessions sets no limit: "
    "an issue that stays active is run without end",
    "W.md:1:1: warning: robot.trust: trusts nothing",
]

AS_PROMPT = "of the file is taken as the prompt"
NONE = (
    "W.md:1:1: warning: there is no front matter (settings between two lines of ---), "
    f"so all {AS_PROMPT}"
)

UNRECOGNIZED = {
    "opening line left out": (
        "traker:\n  kind: file\n---\nx",
        "1:1",
        "the settings that begin here lack a line --- before (and one after) them",
    ),
    "TOML": (
        "+++\nkind = 'file'\n+++\nx",
        "1:1",
        "+++ begins front matter of TOML, and only YAML between two lines of --- is read",
    ),
    "JSON": (
        '{"tracker": {"kind": "file"}}\nx',
        "1:1",
        "settings as JSON need a line --- before and after them",
    ),
    "indented": (
        "  ---\n  tracker: {}\n  ---\nx",
        "1:1",
        "--- is indented and begins no front matter",
    ),
    "more on the line": (
        "--- # settings\ntracker: {}\n---\nx",
        "1:1",
        "--- is followed by something on its line and begins no front matter",
    ),
}


def test_a_good_file_gives_settings_and_prompt(tmp_path: Path) -> None:
    """The prompt is what follows the front matter, and knows the line on which it begins."""
    path = write(tmp_path / "W.md", f"{FRONT_MATTER}\n\n{PROMPT}\n\n")

    workflow = loaded(path)

    assert workflow == Workflow(
        path=path,
        settings=workflow.settings,
        prompt=Prompt(source=PROMPT, line=13, path=str(path)),
    )
    assert workflow.settings.db_path == f"{tmp_path}/.sortie.db"
    digest = hashlib.sha256(str(path).encode()).hexdigest()[:16]
    assert workflow.settings.workspace.root == (f"/home/me/.local/state/sortie/workspaces/{digest}")


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems name the file as it was given; the workflow knows its absolute path."""
    write(tmp_path / "W.md", FRONT_MATTER)
    monkeypatch.chdir(tmp_path)

    workflow = loaded(Path("W.md"))

    assert workflow.path == tmp_path / "W.md"
    assert [str(warning) for warning in workflow.warnings] == [
        "W.md:10:1: warning: prompt: "
        "there is no prompt below the front matter; a built-in one is used"
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + (FRONT_MATTER + PROMPT).encode(),
        (FRONT_MATTER + PROMPT).replace("\n", "\r\n").encode(),
        (FRONT_MATTER + PROMPT).replace("\n", "\r").encode(),
        b"\n  \n" + (FRONT_MATTER + PROMPT).replace("---\n", "---  \n").encode(),
    ],
    ids=["byte order mark", "CRLF", "CR", "blank lines"],
)
def test_files_of_any_editor_are_read(tmp_path: Path, content: bytes) -> None:
    """A byte order mark, other line ends, and white space around ``---`` change nothing."""
    workflow = loaded(write(tmp_path / "W.md", content))

    assert workflow.prompt.source == PROMPT
    assert workflow.settings.tracker.active_states == ("Todo",)


def test_a_rule_in_the_prompt_is_no_front_matter(tmp_path: Path) -> None:
    """Only the first two lines of dashes bound the front matter."""
    workflow = loaded(write(tmp_path / "W.md", f"{FRONT_MATTER}a\n---\nb"))

    assert workflow.prompt.source == "a\n---\nb"


def test_places_are_those_of_the_file(tmp_path: Path) -> None:
    """Lines count from the top of the file, also below a byte order mark and blank lines."""
    content = "\ufeff\n---\r\ntracker:\r\n  kind: 5\r\n---\r\n\r\n\r\n{{ nope }}\r\n"

    found = problems(write(tmp_path / "W.md", content))

    assert "W.md:4:9: tracker.kind: needs a known kind, not 5; known: board, file" in found
    assert found[-1] == (
        'W.md:8:4: prompt: there is no "nope";'
        " known: attempt, issue, reaction, repository, review, run, stage, workspace"
    )


CONTENTS: dict[str, tuple[str | bytes, list[str]]] = {
    "no front matter": (PROMPT, [NONE, *NO_TRACKER]),
    **{
        name: (content, [f"W.md:{place}: warning: {why}, so all {AS_PROMPT}", *NO_TRACKER])
        for name, (content, place, why) in UNRECOGNIZED.items()
    },
    "empty": (
        "",
        [
            NONE,
            *NO_TRACKER,
            "W.md:1:1: warning: prompt: "
            "there is no prompt below the front matter; a built-in one is used",
        ],
    ),
    "empty front matter": ("---\n---\na", NO_TRACKER),
    "front matter of comments": ("---\n# nothing\n---\na", NO_TRACKER),
    "unclosed": (
        "\n---\ntracker: {}\n",
        ["W.md:2:1: the front matter that begins here does not end; close it with a line ---"],
    ),
    "text": (
        "---\nhello\n---\na",
        ['W.md:2:1: the front matter needs to be a mapping, not the text "hello"'],
    ),
    "list": ("---\n- a\n---\na", ["W.md:2:1: the front matter needs to be a mapping, not a list"]),
    "bad YAML": (
        "---\ntracker:\n  kind: file: b\n---\n{{ nope }}",
        [
            "W.md:3:13: invalid YAML: a second colon on this line; "
            "put a text that holds a colon in quotes",
            'W.md:5:4: prompt: there is no "nope"; known: attempt, issue, reaction, '
            "repository, review, run, stage, workspace",
        ],
    ),
    "open quote": (
        '---\na: "b\n---\nc',
        ["W.md:2:4: invalid YAML: the quote that begins here is not closed"],
    ),
    "tab": (
        "---\na:\n\tb: c\n---\n",
        [
            "W.md:3:1: invalid YAML: a tab stands here; lines are indented with blanks only",
            "W.md:4:1: warning: prompt: "
            "there is no prompt below the front matter; a built-in one is used",
        ],
    ),
    "not UTF-8": (b"---\na: \xe9b\xff\n---\n", ["W.md:2:4: is not UTF-8: byte 0xe9"]),
    "not UTF-8 after a mark": (
        b"\xef\xbb\xbfa\xc3\xa9\xff",
        ["W.md:1:3: is not UTF-8: byte 0xff"],
    ),
    "UTF-16": ("---\n".encode("utf-16"), ["W.md:1:1: is not UTF-8: byte 0xff"]),
    "NUL": ("---\n---\nab\x00", ["W.md:3:3: holds the control character U+0000"]),
    "escape": ("---\na: \x1b[1m\n---\n", ["W.md:2:4: holds the control character U+001B"]),
    "C1": ("---\na: \x80\n---\nx", ["W.md:2:4: invalid YAML: a character that it does not allow"]),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_bad_content(tmp_path: Path, name: str) -> None:
    """What is wrong with a file is told with its place."""
    content, expected = CONTENTS[name]

    assert problems(write(tmp_path / "W.md", content)) == expected


def test_front_matter_and_prompt_are_checked_at_once(tmp_path: Path) -> None:
    """YAML, settings, env file and prompt are all told in one go, in the file's order."""
    write(tmp_path / "env", "SORTIE_AGENT_MAX_TURNS=x\nOTHER\nSORTIE_BROKEN\n")
    content = (
        "---\ntracker: {kind: file}\npolling: {interval_ms: 0}\npolling: 5\n---\n{{ a }} {% if %}"
    )

    found = problems(write(tmp_path / "W.md", content), env_file=tmp_path / "env")

    assert [line.partition(": ")[0] for line in found if "warning" not in line] == [
        "W.md:2:1",
        "W.md:2:1",
        "W.md:3:24",
        "W.md:4:1",
        "W.md:6:1",
        "env:1:1",
        "env:3:1",
    ]
    assert found[-2:] == [
        'env:1:1: SORTIE_AGENT_MAX_TURNS: needs a whole number of at least 1, not the text "x"',
        "env:3:1: SORTIE_BROKEN: needs to be NAME=value",
    ]


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    """Nothing, a directory, a FIFO, a device, a socket, a broken link: told without waiting."""
    (tmp_path / "dir").mkdir()
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "s"))

        found = [
            problems(path)
            for path in (
                *(tmp_path / name for name in ("none", "dir", "fifo", "link", "loop", "s")),
                Path("/dev/zero"),
            )
        ]

    assert found == [
        ["none: there is no such file"],
        ["dir: is a directory, not a file"],
        ["fifo: is not a regular file"],
        ["link: there is no such file"],
        ["loop: cannot be read: Too many levels of symbolic links"],
        ["s: cannot be read: No such device or address"],
        ["zero: is not a regular file"],
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    """A file without read permission is told."""
    path = write(tmp_path / "W.md", FRONT_MATTER)
    path.chmod(0)

    assert problems(path) == ["W.md: cannot be read: Permission denied"]


def test_a_file_over_a_mebibyte_is_refused_unread(tmp_path: Path) -> None:
    """1 MiB is read, one byte more is not; a huge file costs no time."""
    just = write(tmp_path / "just", FRONT_MATTER + "x" * ((1 << 20) - len(FRONT_MATTER)))
    over = write(tmp_path / "over", just.read_bytes() + b"x")
    huge = tmp_path / "huge"
    with huge.open("wb") as file:
        file.truncate(1 << 40)
    begin = time.monotonic()

    found = [problems(just), problems(over), problems(huge)]

    assert found == [[], ["over: is larger than 1 MiB"], ["huge: is larger than 1 MiB"]]
    assert time.monotonic() - begin < 30


def test_the_env_file_comes_between(tmp_path: Path) -> None:
    """Its SORTIE_* lines win over front matter, lose against the environment, and feed $VAR."""
    env_file = write(
        tmp_path / "env",
        "# comment\n"
        "export SORTIE_TRACKER_ACTIVE_STATES='A, B'\n"
        'SORTIE_KEY = "a key"\n'
        "SORTIE_AGENT_MAX_TURNS=1\n"
        "SORTIE_AGENT_MAX_TURNS=2\n"
        "SORTIE_AGENT_MAX_SESSIONS=3\n"
        "PATH=/nowhere\n",
    )
    path = write(
        tmp_path / "W.md",
        FRONT_MATTER.replace("kind: file", "kind: file\n  api_key: $SORTIE_KEY") + PROMPT,
    )

    workflow = load(
        path,
        schemas=SCHEMAS,
        env=ENV | {"SORTIE_AGENT_MAX_SESSIONS": "4"},
        env_file=env_file,
        flags={"server.port": "0"},
    )

    settings = workflow.settings
    assert settings.tracker.active_states == ("A", "B")
    assert settings.tracker.api_key == SecretStr("a key")
    assert (settings.agent.max_turns, settings.agent.max_sessions) == (2, 4)
    assert (settings.server.port, settings.server.port_given) == (0, True)
    assert workflow.warnings == ()


def test_a_missing_env_file_is_an_error(tmp_path: Path) -> None:
    """An env file that was asked for must be readable, and is told beside all else."""
    path = write(tmp_path / "W.md", FRONT_MATTER + PROMPT)

    found = problems(path, env_file=tmp_path / "env")

    assert found == ["env: there is no such file"]
    assert problems(tmp_path / "none", env_file=tmp_path / "env") == [
        "none: there is no such file",
        "env: there is no such file",
    ]


def test_the_home_of_the_user_is_the_default(tmp_path: Path) -> None:
    """Where the environment has no HOME, that of the user database counts."""
    workflow = loaded(write(tmp_path / "W.md", FRONT_MATTER + PROMPT), {})

    home = os.path.expanduser(f"~{os.popen('id -un').read().strip()}")
    assert workflow.settings.workspace.root.startswith(f"{home}/.local/state/sortie/")


def test_the_default_root_stays_when_what_a_link_points_to_changes(tmp_path: Path) -> None:
    """A mounted configuration is replaced by changing a link; its workspaces must not move.

    Two ways to its directory still give one root.
    """
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        write(tmp_path / version / "W.md", FRONT_MATTER + PROMPT)
    path = tmp_path / "W.md"
    path.symlink_to("one/W.md")
    (tmp_path / "way").symlink_to(".")
    before = loaded(path).settings.workspace

    path.unlink()
    path.symlink_to("two/W.md")

    assert loaded(path).settings.workspace == before
    assert loaded(tmp_path / "way" / "W.md").settings.workspace == before


def test_the_error_text_holds_errors_only(tmp_path: Path) -> None:
    """The exception prints errors; its problems hold the warnings too."""
    path = write(tmp_path / "W.md", FRONT_MATTER + "{{ nope }}\n")
    write(path, path.read_text().replace("robot:", "machine:\n  a: 1\nrobot:"))

    with pytest.raises(WorkflowError) as caught:
        loaded(path)

    assert [problem.severity for problem in caught.value.problems] == ["warning", "error"]
    assert "machine" not in str(caught.value)


def test_what_is_no_file_costs_no_descriptor(tmp_path: Path) -> None:
    """However often a directory is looked at in the file's place, nothing stays open."""
    with no_descriptor_stays_open():
        for _ in range(5):
            assert problems(tmp_path)


@pytest.mark.parametrize("missing", ["opentelemetry", "opentelemetry.exporter.otlp.proto.common"])
def test_traces_need_their_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    """One clear error says what to install, and it stands at the block."""

    def find(name: str) -> object:
        if name == missing:
            return None
        if name.startswith(f"{missing}."):
            raise ModuleNotFoundError(name)
        return name

    content = FRONT_MATTER.removesuffix("---\n") + f"traces: {{}}\n---\n{PROMPT}"
    path = write(tmp_path / "W.md", content)
    good = problems(path)
    monkeypatch.setattr(loader, "find_spec", find)
    (told,) = set(problems(path)) - set(good)

    assert "traces: needs a library that is not installed: pip install 'sortie[traces]'" in told
