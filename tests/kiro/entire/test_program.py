"""The executable, run as Entire runs it: one process a call."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortie.kiro.entire.hooks import VERBS
from sortie.kiro.entire.transcripts import Transcript, as_document, chunked, reassembled
from tests.kiro.conversations.written import (
    document,
    entry,
    results,
    said,
    uses,
    write_v1,
    write_v2,
)

PROGRAM = [
    sys.executable,
    "-c",
    "import sys; from sortie.kiro.entire import main; sys.exit(main())",
]
SESSION = "0123456789abcdef0123456789abcdef"
TURN = (
    entry({"Prompt": {"prompt": "do it"}}, uses(("t-1", "write", {"path": "a.py"}))),
    entry(results(("t-1", {"Text": "ok"}, "Success")), said("done")),
)


@dataclass
class Repo:
    """A repository; ``call`` runs the executable in it and returns code, stdout and stderr."""

    root: Path

    @property
    def sessions(self) -> Path:
        return self.root / ".entire" / "tmp"

    def environment(self, **more: str) -> dict[str, str]:
        home = {"HOME": str(self.root / "home"), "ENTIRE_PROTOCOL_VERSION": "1"}
        here = {"ENTIRE_REPO_ROOT": str(self.root), "PATH": os.environ["PATH"]}
        project = {"PYTHONPATH": str(Path(__file__).parents[3])}
        return {**home, **here, **project, **more}

    def call(self, *arguments: str, given: bytes = b"", **more: str) -> tuple[int, bytes, str]:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            input=given,
            capture_output=True,
            cwd=self.root,
            env=self.environment(**more),
            timeout=30,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr.decode()

    def told(self, *arguments: str, given: Any = None, **more: str) -> Any:
        """Call, and return the JSON that it answers."""
        content = b"" if given is None else json.dumps(given).encode()
        code, out, err = self.call(*arguments, given=content, **more)
        assert (code, err) == (0, "")
        return json.loads(out)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    (tmp_path / "repo").mkdir()
    return Repo(tmp_path / "repo")


def test_info_says_what_is_there(repo: Repo) -> None:
    """Under the name by which Entire finds the file."""
    info = repo.told("info")

    assert (info["protocol_version"], info["name"], info["is_preview"]) == (1, "kiro", False)
    assert info["hook_names"] == list(VERBS)
    assert {name for name, has in info["capabilities"].items() if has} == {
        "hooks",
        "transcript_analyzer",
        "compact_transcript",
    }
    assert info["protected_files"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-call"],
        ["info", "--what"],
        ["info", "word"],
        ["get-session-dir"],
        ["get-session-dir", "--repo-path"],
        ["chunk-transcript", "--max-size", "0"],
        ["chunk-transcript", "--max-size", "-1"],
        ["chunk-transcript", "--max-size", "many"],
        ["parse-hook", "--hook", "unheard-of"],
        ["read-transcript", "--session-ref", "/etc/passwd"],
        ["read-transcript", "--session-ref", "../../etc/passwd"],
        ["resolve-session-file", "--session-dir", "/d", "--session-id", "../up"],
        ["read-session"],
        ["compact-transcript", "--session-ref", SESSION],
    ],
)
def test_what_cannot_be_answered_is_1_and_a_line_on_stderr(
    repo: Repo, arguments: list[str]
) -> None:
    """And nothing on stdout."""
    code, out, err = repo.call(*arguments)

    assert (code, out) == (1, b"")
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["get-session-id"],
        ["read-session"],
        ["write-session"],
        ["reassemble-transcript"],
        ["parse-hook", "--hook", "stop"],
    ],
)
@pytest.mark.parametrize("given", [b"{not json", b"[1]"])
def test_malformed_input_is_an_error(repo: Repo, arguments: list[str], given: bytes) -> None:
    """Rather than an empty answer."""
    code, out, err = repo.call(*arguments, given=given)

    assert (code, out) == (1, b"")
    assert "JSON" in err


def test_kiro_is_detected_by_its_directory(repo: Repo) -> None:
    """In the repository that the environment names, else in the working directory."""
    before = repo.told("detect")
    (repo.root / ".kiro").mkdir()

    assert (before, repo.told("detect")) == ({"present": False}, {"present": True})
    assert repo.told("detect", ENTIRE_REPO_ROOT="") == {"present": True}


def test_sessions_are_where_entire_looks(repo: Repo) -> None:
    """A directory below the repository, and a file for each session."""
    assert repo.told("get-session-dir", "--repo-path", "/r") == {"session_dir": "/r/.entire/tmp"}
    assert repo.told("resolve-session-file", "--session-dir", "/d", "--session-id", "x") == {
        "session_file": "/d/x.json"
    }
    assert repo.told("format-resume-command", "--session-id", "x") == {
        "command": "kiro-cli chat --resume"
    }


def test_a_session_keeps_its_id(repo: Repo) -> None:
    """From the agent's start to its next start; without one, from the first prompt on."""
    before = repo.told("get-session-id", given={"session_id": "theirs"})
    prompted = repo.told("parse-hook", "--hook", "user-prompt-submit", USER_PROMPT="do it")
    stopped = repo.told("parse-hook", "--hook", "stop")
    known = repo.told("get-session-id", given={})
    spawned = repo.told("parse-hook", "--hook", "agent-spawn", given={"cwd": "/x"})

    assert before == {"session_id": "theirs"}
    assert (prompted["type"], prompted["prompt"], stopped["type"]) == (2, "do it", 3)
    assert prompted["session_id"] == stopped["session_id"] == known["session_id"]
    assert (spawned["type"], len(spawned["session_id"])) == (1, 32)
    assert spawned["session_id"] != known["session_id"]
    assert spawned["session_ref"] == str(repo.sessions / f"{spawned['session_id']}.json")


@pytest.mark.parametrize("hook", list(VERBS))
@pytest.mark.parametrize("given", [None, {}, {"prompt": "p", "tool_name": "write", "new": [1]}])
def test_every_hook_is_parsed_with_a_payload_and_without(repo: Repo, hook: str, given: Any) -> None:
    """A tool's hooks mean no event."""
    event = repo.told("parse-hook", "--hook", hook, given=given)

    assert (event is None) == hook.endswith("tool-use")


def test_a_hook_does_not_wait_for_a_pipe_that_stays_open(repo: Repo) -> None:
    """An IDE may hold it open and say nothing."""
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w"):
        done = subprocess.run(
            [*PROGRAM, "parse-hook", "--hook", "user-prompt-submit"],
            stdin=read,
            capture_output=True,
            cwd=repo.root,
            env=repo.environment(USER_PROMPT="from the IDE"),
            timeout=20,
            check=True,
        )

    assert json.loads(done.stdout)["prompt"] == "from the IDE"


def test_at_the_end_of_a_turn_the_cli_session_is_recorded(repo: Repo) -> None:
    """As Kiro has it, byte for byte; the newest of all its stores."""
    value = document(*TURN)
    write_v1(repo.root / "data" / "kiro-cli" / "data.sqlite3", (str(repo.root), value, 9_000_000))
    data = {"XDG_DATA_HOME": str(repo.root / "data")}

    event = repo.told("parse-hook", "--hook", "stop", **data)

    assert event["response_message"] == "done"
    reference = ("--session-ref", event["session_ref"])
    assert json.loads(repo.call("read-transcript", *reference)[1]) == value
    path = ("--path", event["session_ref"])
    assert repo.told("get-transcript-position", *path) == {"position": 2}
    assert repo.told("extract-modified-files", *path, "--offset", "0") == {
        "files": ["a.py"],
        "current_position": 2,
    }
    assert repo.told("extract-modified-files", *path, "--offset", "1")["files"] == []
    assert repo.told("extract-prompts", *reference, "--offset", "0") == {"prompts": ["do it"]}
    assert repo.told("extract-summary", *reference) == {"summary": "done", "has_summary": True}
    assert oct(Path(event["session_ref"]).stat().st_mode)[-3:] == "600"

    write_v2(
        repo.root / "home" / ".kiro" / "sessions",
        str(repo.root),
        "2026-11-01T10:00:00Z",
        ("Prompt", [{"kind": "text", "data": "and more"}]),
        ("AssistantMessage", [{"kind": "text", "data": "newer"}]),
    )
    later = repo.told("parse-hook", "--hook", "stop", **data)

    assert later["response_message"] == "newer"
    assert repo.told("extract-prompts", *reference, "--offset", "0") == {"prompts": ["and more"]}


def ide_folder(repo: Repo, *index: dict[str, Any]) -> Path:
    """Make the folder in which Kiro IDE keeps the sessions of a repository."""
    name = base64.b64encode(str(repo.root).encode()).decode()
    sessions = "home/.config/Kiro/User/globalStorage/kiro.kiroagent/workspace-sessions"
    folder = repo.root / sessions / name
    folder.mkdir(parents=True)
    (folder / "sessions.json").write_text(json.dumps(index))
    return folder


IDE_HISTORY = [
    {"message": {"role": "user", "content": "hello"}},
    {
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I write"},
                {"type": "tool_use", "id": "t", "name": "fs_write", "input": {"path": "b.py"}},
            ],
        }
    },
    {
        "message": {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}],
        }
    },
    {"message": {"role": "assistant", "content": "there"}},
]


def test_at_the_end_of_a_turn_the_ide_session_is_recorded(repo: Repo) -> None:
    """From the folder that is named after the repository."""
    folder = ide_folder(repo, {"sessionId": "i-1", "title": "t"})
    (folder / "i-1.json").write_text(json.dumps({"history": IDE_HISTORY}))

    event = repo.told("parse-hook", "--hook", "stop")

    assert event["response_message"] == "there"
    path = ("--path", event["session_ref"])
    assert repo.told("extract-modified-files", *path, "--offset", "0") == {
        "files": ["b.py"],
        "current_position": 4,
    }


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00+00:00"),
        ("999999999999", "1767225600000"),
        ("1767225600000", "2026-02-01T00:00:00Z"),
        (None, "2026-02-01T00:00:00Z"),
        ("no date", 1767225600000),
        ([], "1767225600000"),
    ],
)
def test_the_newest_ide_session_is_the_one_that_the_list_says(
    repo: Repo, older: object, newer: object
) -> None:
    """Whichever file was touched last, in whatever order the list is."""
    index = [{"sessionId": "new", "dateCreated": newer}, {"sessionId": "old", "dateCreated": older}]
    folder = ide_folder(repo, *index)
    for name, mtime in (("new", 1_000), ("old", 2_000)):
        history = [{"message": {"role": "assistant", "content": name}}]
        (folder / f"{name}.json").write_text(json.dumps({"history": history}))
        os.utime(folder / f"{name}.json", (mtime, mtime))

    event = repo.told("parse-hook", "--hook", "stop")

    assert event["response_message"] == "new"


def test_without_a_session_of_kiros_the_record_is_empty(repo: Repo) -> None:
    """And a record that is there stays."""
    event = repo.told("parse-hook", "--hook", "stop")
    kept = Path(event["session_ref"])
    assert repo.told("extract-summary", "--session-ref", str(kept)) == {
        "summary": "",
        "has_summary": False,
    }
    kept.write_text(json.dumps(document(*TURN)))

    repo.told("parse-hook", "--hook", "stop")

    assert repo.told("get-transcript-position", "--path", str(kept)) == {"position": 2}


def test_a_transcript_with_nothing_in_it_has_nothing(repo: Repo) -> None:
    """An empty object, and a file that is not there."""
    repo.sessions.mkdir(parents=True)
    empty = repo.sessions / "empty.json"
    empty.write_text("{}")
    for path in (empty, repo.sessions / "none.json"):
        assert repo.told("get-transcript-position", "--path", str(path)) == {"position": 0}
        assert repo.told("extract-modified-files", "--path", str(path), "--offset", "999") == {
            "files": [],
            "current_position": 0,
        }
        assert repo.told("extract-prompts", "--session-ref", str(path), "--offset", "999") == {
            "prompts": []
        }
        assert not repo.told("extract-summary", "--session-ref", str(path))["has_summary"]


@pytest.mark.parametrize("content", [b"", b"no \xff JSON", json.dumps(document(*TURN)).encode()])
def test_what_is_written_is_read_again_byte_for_byte(repo: Repo, content: bytes) -> None:
    """Whatever it is, and by reference or by id."""
    session: dict[str, object] = {
        "session_id": SESSION,
        "agent_name": "kiro",
        "repo_path": str(repo.root),
        "session_ref": str(repo.sessions / f"{SESSION}.json"),
        "start_time": "2026-11-01T10:00:00Z",
        "native_data": base64.b64encode(content).decode(),
        "modified_files": None,
        "something_new": {},
    }
    code, out, err = repo.call("write-session", given=json.dumps(session).encode())
    by_id = repo.told("read-session", given={"session_id": SESSION})
    by_reference = repo.told("read-session", given={"session_ref": session["session_ref"]})

    assert (code, out, err) == (0, b"", "")
    assert by_id == by_reference
    assert base64.b64decode(by_id["native_data"]) == content
    assert isinstance(by_id["modified_files"], list)
    assert (by_id["new_files"], by_id["deleted_files"]) == ([], [])
    assert repo.call("read-transcript", "--session-ref", SESSION)[1] == content


def test_a_transcript_may_be_named_by_any_absolute_path(repo: Repo, tmp_path: Path) -> None:
    """By ``--session-ref`` as by ``--path``; bytes are read from the repository alone."""
    elsewhere = tmp_path / "elsewhere.json"
    for path in (repo.root / "in-the-root.json", elsewhere):
        path.write_text(json.dumps(document(*TURN)))
        reference = ("--session-ref", str(path))

        prompts = repo.told("extract-prompts", *reference, "--offset", "0")
        assert prompts == {"prompts": ["do it"]}
        assert repo.told("extract-prompts", *reference, "--offset", "999") == {"prompts": []}
        assert repo.told("extract-summary", *reference) == {"summary": "done", "has_summary": True}
        code, out, _ = repo.call("read-transcript", *reference)
        assert (code, bool(out)) == ((1, False) if path == elsewhere else (0, True))


def compact(repo: Repo, value: Any, **more: str) -> list[Any]:
    """Return the lines of a transcript in Entire's compact form."""
    (repo.root / "t.json").write_text(json.dumps(value))
    told = repo.told("compact-transcript", "--session-ref", str(repo.root / "t.json"), **more)
    text = base64.b64decode(told["transcript"], validate=True).decode()
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def test_a_session_of_the_cli_is_compacted(repo: Repo) -> None:
    """With the times, the names and the results that Entire shows; what was stopped failed."""
    began = entry({"Prompt": {"prompt": "do it"}}, said("I write", "m-1"))
    began["user"]["timestamp"] = "2026-01-01T00:00:00Z"
    stopped = {"tool_use_id": "t-3", "content": [], "status": "Error"}
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("t-1", "fs_write", {"path": "a.py"}),
        ("t-2", "shell", {}),
    )
    value = document(
        began,
        entry(None, uses(*calls, text="see")),
        entry(results(("t-1", {"Text": "ok"}, "Success"), ("t-2", {"Text": "no"}, "Error")), None),
        entry(None, uses(("t-3", "write", {}), ("t-4", "unanswered", {}))),
        entry({"CancelledToolUses": {"prompt": "stop", "tool_use_results": [stopped]}}, None),
    )
    head = {"v": 1, "agent": "kiro", "cli_version": "9.9.9"}

    def tool(id_: str, name: str, given: Any, result: Any = None) -> dict[str, Any]:
        block = {"type": "tool_use", "id": id_, "name": name, "input": given}
        return block if result is None else {**block, "result": result}

    lines = compact(repo, value, ENTIRE_CLI_VERSION="9.9.9")

    at = {"ts": "2026-01-01T00:00:00Z"}
    assert lines == [
        {**head, "type": "user", **at, "content": [{"text": "do it"}]},
        {
            **head,
            "type": "assistant",
            **at,
            "id": "m-1",
            "content": [{"type": "text", "text": "I write"}],
        },
        {
            **head,
            "type": "assistant",
            "id": "m-0",
            "content": [
                {"type": "text", "text": "see"},
                tool("t-1", "Write", {"path": "a.py"}, {"output": "ok", "status": "success"}),
                tool("t-2", "shell", {}, {"output": "no", "status": "error"}),
            ],
        },
        {
            **head,
            "type": "assistant",
            "id": "m-0",
            "content": [
                tool("t-3", "Write", {}, {"output": "", "status": "error"}),
                tool("t-4", "unanswered", {}),
            ],
        },
        {**head, "type": "user", "content": [{"text": "stop"}]},
    ]


def test_a_session_of_the_ide_is_compacted(repo: Repo) -> None:
    """The version that recorded it goes before the caller's."""
    value = {"cli_version": "1.2.3", "history": IDE_HISTORY}

    lines = compact(repo, value, ENTIRE_CLI_VERSION="9.9.9")

    assert {line["cli_version"] for line in lines} == {"1.2.3"}
    assert [(line["type"], line["content"]) for line in lines] == [
        ("user", [{"text": "hello"}]),
        (
            "assistant",
            [
                {"type": "text", "text": "I write"},
                {
                    "type": "tool_use",
                    "id": "t",
                    "name": "Write",
                    "input": {"path": "b.py"},
                    "result": {"output": "ok", "status": "success"},
                },
            ],
        ),
        ("assistant", [{"type": "text", "text": "there"}]),
    ]


@pytest.mark.parametrize("value", [{}, {"history": []}, {"history": [{"message": {}}, 7]}])
def test_a_transcript_without_words_cannot_be_compacted(repo: Repo, value: Any) -> None:
    """One line says so."""
    (repo.root / "t.json").write_text(json.dumps(value))

    code, out, err = repo.call("compact-transcript", "--session-ref", str(repo.root / "t.json"))

    assert (code, out, err.count("\n")) == (1, b"", 1)


def test_nothing_is_written_outside_of_the_sessions(repo: Repo) -> None:
    """Not through a path with dots, nor through a link."""
    repo.sessions.mkdir(parents=True)
    (repo.sessions / "link").symlink_to(repo.root)
    (repo.sessions / "file.json").symlink_to(repo.root / "victim")
    for reference in (
        str(repo.root / "x.json"),
        f"{repo.sessions}/../x.json",
        f"{repo.sessions}/link/x.json",
        "../x",
        "/",
    ):
        session = {"session_ref": reference, "native_data": "eA=="}
        assert repo.call("write-session", given=json.dumps(session).encode())[0] == 1
    assert repo.call("read-transcript", "--session-ref", "file")[0] == 1
    assert sorted(p.name for p in repo.root.iterdir()) == [".entire"]


@given(st.binary(max_size=300), st.integers(1, 400))
def test_chunking_has_an_inverse(content: bytes, size: int) -> None:
    """For any bytes and any size."""
    assert reassembled(chunked(content, size)) == content


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda x: (
            st.lists(x)
            | st.dictionaries(
                st.sampled_from(
                    ["history", "user", "content", "message", "role", "assistant", "id", "type"]
                ),
                x,
            )
        ),
    )
)
def test_no_transcript_breaks_the_analysis(history: Any) -> None:
    """Whatever stands in a document, it has a length, files, prompts and perhaps a summary."""
    found = Transcript(json.dumps({"history": history}).encode())

    assert found.length >= 0
    assert isinstance(found.modified_files(), list)
    assert isinstance(found.prompts(), list)
    found.summary()


def test_a_conversation_of_another_engine_loses_nothing() -> None:
    """In the form of engine v1 it has the same records, but for times and models."""
    from sortie.kiro.conversations.history_v1 import read_document
    from sortie.kiro.conversations.records import ConversationSummary

    summary = ConversationSummary(engine="v2", id="c-1", directory="", place="")
    cancelled = {"prompt": "stop", "tool_use_results": [{"tool_use_id": "t-9", "content": []}]}
    whole = read_document(
        document(
            *TURN,
            entry({"Prompt": {"prompt": "more"}}, uses(("t-9", "write", {"path": "b"}), text="so")),
            entry({"CancelledToolUses": cancelled}, said("well")),
        ),
        summary,
    )

    again = read_document(as_document(whole), summary)

    def essence(records: Any) -> list[tuple[Any, ...]]:
        names = ("text", "id", "name", "tool_use_id", "tool_use_ids", "prompt", "succeeded")
        return [(type(r), *(getattr(r, name, None) for name in names)) for r in records]

    assert essence(again.records) == essence(whole.records)


def test_what_nobody_has_answered_is_not_lost() -> None:
    """A prompt before a stopped tool of engine v3, two prompts in a row, and the last one."""
    from sortie.kiro.conversations import records as r

    said = (
        r.UserPrompt(text="one"),
        r.ToolUsesCancelled(tool_use_ids=("t-1",)),
        r.ToolUse(id="t-1", name="fs_write", input={"path": "a.py"}),
        r.ModelAnswer(text="stopped"),
        r.UserPrompt(text="two"),
        r.UserPrompt(text="three"),
    )
    summary = r.ConversationSummary(engine="v3", id="c-3", directory="", place="")

    read = as_document(r.Conversation(summary=summary, records=said, entry_of=(0,) * len(said)))

    transcript = Transcript(json.dumps(read).encode())
    assert transcript.prompts() == ["one", "two", "three"]
    assert (transcript.modified_files(), transcript.summary()) == ([], "stopped")


def test_hooks_are_installed_once(repo: Repo) -> None:
    """Nine the first time, none when nothing has changed, all again with --force."""
    before = repo.told("are-hooks-installed")
    counts = [
        repo.told("install-hooks")["hooks_installed"],
        repo.told("install-hooks", "--local-dev")["hooks_installed"],
        repo.told("install-hooks", "--force")["hooks_installed"],
    ]

    assert (before, repo.told("are-hooks-installed")) == ({"installed": False}, {"installed": True})
    assert counts == [9, 0, 9]
    agent = repo.root / ".kiro" / "agents" / "entire.json"
    hooks = json.loads(agent.read_text())["hooks"]
    assert hooks["stop"] == [{"command": "entire hooks kiro stop"}]
    assert len(hooks) == 5
    assert oct(agent.stat().st_mode)[-3:] == "600"
    ide = json.loads((repo.root / ".kiro/hooks/entire-prompt-submit.kiro.hook").read_text())
    assert ide["when"] == {"type": "promptSubmit"}
    assert ide["then"]["command"] == "sh -c 'entire hooks kiro user-prompt-submit </dev/null'"


def test_hooks_leave_what_others_wrote(repo: Repo) -> None:
    """When they come and when they go."""
    (repo.root / ".kiro" / "agents").mkdir(parents=True)
    (repo.root / ".vscode").mkdir()
    settings = repo.root / ".vscode" / "settings.json"
    settings.write_text('{"editor.tabSize": 3, "kiroAgent.trustedCommands": ["make *"]}')
    agent = repo.root / ".kiro" / "agents" / "entire.json"
    agent.write_text('{"name": "mine", "hooks": {"stop": [{"command": "ours"}]}}')

    assert repo.told("install-hooks") == {"hooks_installed": 9}
    trusted = json.loads(settings.read_text())["kiroAgent.trustedCommands"]
    told = json.loads(agent.read_text())
    code, out, _ = repo.call("uninstall-hooks")
    again = repo.call("uninstall-hooks")[0]

    assert trusted == ["make *", "sh -c 'entire hooks *"]
    assert told["name"] == "mine"
    assert told["hooks"]["stop"] == [{"command": "ours"}, {"command": "entire hooks kiro stop"}]
    assert (code, out, again) == (0, b"", 0)
    assert json.loads(agent.read_text()) == {
        "name": "mine",
        "tools": told["tools"],
        "hooks": {"stop": [{"command": "ours"}]},
    }
    assert json.loads(settings.read_text()) == {
        "editor.tabSize": 3,
        "kiroAgent.trustedCommands": ["make *"],
    }
    assert repo.told("are-hooks-installed") == {"installed": False}


def test_settings_that_are_no_json_are_left_alone(repo: Repo) -> None:
    """VS Code takes comments in its settings; the hooks themselves are installed."""
    (repo.root / ".vscode").mkdir()
    settings = repo.root / ".vscode" / "settings.json"
    settings.write_text('{"a": 1, // mine\n}')

    code, out, err = repo.call("install-hooks")

    assert (code, json.loads(out)) == (0, {"hooks_installed": 9})
    assert str(settings) in err
    assert settings.read_text() == '{"a": 1, // mine\n}'
