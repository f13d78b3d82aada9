"""The calls of ``entire-agent-kiro``: one for each process, its answer on stdout.

Exit codes: 0; 1 for every error, with a line on stderr.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sortie.kiro.entire.call import (
    PAYLOAD_SILENCE,
    Call,
    flags_in,
    input_bytes,
    json_input,
    text_in,
)
from sortie.kiro.entire.repository import EntireError, EntireRepository, file_name, write_file

if TYPE_CHECKING:
    from sortie.kiro.entire.transcripts import Transcript


def _info(_: Call) -> object:
    from sortie.kiro.entire.hooks import VERBS

    able = {"hooks", "transcript_analyzer", "compact_transcript"}
    capabilities = (
        "hooks",
        "transcript_analyzer",
        "transcript_preparer",
        "token_calculator",
        "compact_transcript",
        "text_generator",
        "hook_response_writer",
        "subagent_aware_extractor",
    )
    return {
        "protocol_version": 1,
        "name": "kiro",
        "type": "Kiro",
        "description": "Kiro CLI and Kiro IDE, by their hooks and their own records",
        "is_preview": False,
        "protected_dirs": [".kiro"],
        "protected_files": [],
        "hook_names": list(VERBS),
        "capabilities": {name: name in able for name in capabilities},
    }


def _detect(call: Call) -> object:
    return {"present": os.path.isdir(os.path.join(call.repository.root, ".kiro"))}


def _get_session_id(call: Call) -> object:
    told = json_input()
    repository = call.repository
    session = repository.active_session()
    if session is None and isinstance(told.get("session_id"), str) and told["session_id"]:
        file_name(told["session_id"])
        session = told["session_id"]
    return {"session_id": session or repository.begin_session()}


def _get_session_dir(call: Call) -> object:
    return {"session_dir": EntireRepository(os.path.abspath(call.flag("repo-path"))).sessions}


def _resolve_session_file(call: Call) -> object:
    name = file_name(call.flag("session-id"))
    return {"session_file": os.path.join(call.flag("session-dir"), name)}


def _read_session(call: Call) -> object:
    import base64
    from datetime import UTC, datetime

    from sortie.kiro.entire.repository import read_file
    from sortie.kiro.entire.transcripts import Transcript

    told = json_input()
    session = text_in(told, "session_id") or call.repository.active_session() or ""
    path = call.repository.referenced(text_in(told, "session_ref") or session)
    content = read_file(path)
    began = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
    return {
        "session_id": session or os.path.basename(path).removesuffix(".json"),
        "agent_name": "kiro",
        "repo_path": call.repository.root,
        "session_ref": path,
        "start_time": began.isoformat().replace("+00:00", "Z"),
        "native_data": base64.b64encode(content).decode(),
        "modified_files": _files_of(Transcript, content),
        "new_files": [],
        "deleted_files": [],
    }


def _files_of(transcript: Callable[[bytes], Any], content: bytes) -> list[str]:
    """Return the files that a session has written; none where its form is unknown."""
    try:
        found: list[str] = transcript(content).modified_files()
    except EntireError:
        return []
    return found


def _write_session(call: Call) -> None:
    from sortie.kiro.entire.transcripts import decoded

    told = json_input()
    reference = text_in(told, "session_ref") or text_in(told, "session_id")
    if not reference:
        raise EntireError("the session has neither session_ref nor session_id")
    write_file(call.repository.written(reference), decoded(told.get("native_data")))


def _read_transcript(call: Call) -> bytes:
    from sortie.kiro.entire.repository import read_file

    return read_file(call.repository.referenced(call.flag("session-ref")))


def _chunk_transcript(call: Call) -> object:
    from sortie.kiro.entire.transcripts import chunked

    size = call.number("max-size")
    if size <= 0:
        raise EntireError("--max-size must be more than 0")
    return {"chunks": chunked(input_bytes(), size)}


def _reassemble_transcript(_: Call) -> bytes:
    from sortie.kiro.entire.transcripts import reassembled

    chunks = json_input().get("chunks")
    if not isinstance(chunks, list):
        raise EntireError("the input has no list of chunks")
    return reassembled(chunks)


def _format_resume_command(call: Call) -> object:
    call.flag("session-id")  # Kiro goes on with the last session of the directory
    return {"command": "kiro-cli chat --resume"}


def _parse_hook(call: Call) -> object:
    from sortie.kiro.entire.lifecycle import event_of

    hook = call.flag("hook")
    return event_of(hook, input_bytes(silence=PAYLOAD_SILENCE), call.repository, call.environment)


def _install_hooks(call: Call) -> object:
    from sortie.kiro.entire.hooks import HookFiles

    files = HookFiles(call.repository.root)
    count = files.install(force="force" in call.flags)
    try:
        files.trust()
    except EntireError as exc:
        print(f"entire-agent-kiro: the IDE will ask before each hook: {exc}", file=sys.stderr)
    return {"hooks_installed": count}


def _uninstall_hooks(call: Call) -> None:
    from sortie.kiro.entire.hooks import HookFiles

    HookFiles(call.repository.root).uninstall()


def _are_hooks_installed(call: Call) -> object:
    from sortie.kiro.entire.hooks import HookFiles

    return {"installed": HookFiles(call.repository.root).installed()}


def _get_transcript_position(call: Call) -> object:
    from sortie.kiro.entire.transcripts import Transcript

    return {"position": Transcript.at(call.flag("path")).length}


def _extract_modified_files(call: Call) -> object:
    from sortie.kiro.entire.transcripts import Transcript

    found = Transcript.at(call.flag("path"))
    files = found.modified_files(max(0, call.number("offset")))
    return {"files": files, "current_position": found.length}


def _extract_prompts(call: Call) -> object:
    return {"prompts": _referenced(call).prompts(max(0, call.number("offset")))}


def _extract_summary(call: Call) -> object:
    said = _referenced(call).summary()
    return {"summary": said or "", "has_summary": said is not None}


def _compact_transcript(call: Call) -> object:
    import base64

    from sortie.kiro.entire.compact import compacted

    version = call.environment.get("ENTIRE_CLI_VERSION", "").strip() or "unknown"
    return {"transcript": base64.b64encode(compacted(_referenced(call), version)).decode()}


def _referenced(call: Call) -> Transcript:
    """Return the transcript that ``--session-ref`` means; an absolute path may be any, as
    ``--path`` may."""
    from sortie.kiro.entire.transcripts import Transcript

    reference = call.flag("session-ref")
    is_path = os.path.isabs(reference)
    return Transcript.at(reference if is_path else call.repository.referenced(reference))


_CALLS: Mapping[str, tuple[Callable[[Call], object], str, str]] = {
    # a call, its flags with a value, its flags without
    "info": (_info, "", ""),
    "detect": (_detect, "", ""),
    "get-session-id": (_get_session_id, "", ""),
    "get-session-dir": (_get_session_dir, "repo-path", ""),
    "resolve-session-file": (_resolve_session_file, "session-dir session-id", ""),
    "read-session": (_read_session, "", ""),
    "write-session": (_write_session, "", ""),
    "read-transcript": (_read_transcript, "session-ref", ""),
    "chunk-transcript": (_chunk_transcript, "max-size", ""),
    "reassemble-transcript": (_reassemble_transcript, "", ""),
    "format-resume-command": (_format_resume_command, "session-id", ""),
    "parse-hook": (_parse_hook, "hook", ""),
    "install-hooks": (_install_hooks, "", "force local-dev"),
    "uninstall-hooks": (_uninstall_hooks, "", ""),
    "are-hooks-installed": (_are_hooks_installed, "", ""),
    "get-transcript-position": (_get_transcript_position, "path", ""),
    "extract-modified-files": (_extract_modified_files, "path offset", ""),
    "extract-prompts": (_extract_prompts, "session-ref offset", ""),
    "extract-summary": (_extract_summary, "session-ref", ""),
    "compact-transcript": (_compact_transcript, "session-ref", ""),
}


def main() -> int:
    """Answer the call on the command line and return the exit code."""
    try:
        answer = _answer(sys.argv[1:], os.environ)
    except EntireError as exc:
        print(f"entire-agent-kiro: {exc}", file=sys.stderr)
        return 1
    except OSError as exc:
        print(f"entire-agent-kiro: {exc.filename or 'stdin'}: {exc.strerror}", file=sys.stderr)
        return 1
    return _written(answer)


def _answer(arguments: list[str], environment: Mapping[str, str]) -> bytes | None:
    if not arguments or arguments[0] not in _CALLS:
        named = repr(arguments[0]) if arguments else "none"
        raise EntireError(f"the first argument must be a subcommand, not {named}")
    answer, valued, plain = _CALLS[arguments[0]]
    found = answer(Call(flags_in(arguments[1:], valued.split(), plain.split()), environment))
    if found is None and arguments[0] != "parse-hook":
        return None
    return found if isinstance(found, bytes) else json.dumps(found).encode() + b"\n"


def _written(answer: bytes | None) -> int:
    try:
        if answer is not None:
            sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains at its end
        return 1
    return 0
