"""The hooks in a repository, by which Kiro CLI and Kiro IDE tell Entire what they do.

Rule 1: what others have written into the same files stays as it is.
Rule 2: a file that cannot be understood is not written, but for our own ones with ``force``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from sortie.json_rpc import values
from sortie.kiro.entire.repository import EntireError, read_file, write_file

VERBS = {
    "agent-spawn": "agentSpawn",
    "user-prompt-submit": "userPromptSubmit",
    "pre-tool-use": "preToolUse",
    "post-tool-use": "postToolUse",
    "stop": "stop",
}
"""What Entire calls a hook, and what Kiro CLI does."""

_OF_IDE = {
    "prompt-submit": ("user-prompt-submit", "promptSubmit"),
    "stop": ("stop", "agentStop"),
    "pre-tool-use": ("pre-tool-use", "preToolUse"),
    "post-tool-use": ("post-tool-use", "postToolUse"),
}
_TOOLS = ["read", "write", "shell", "@builtin"]
_COMMAND = "entire hooks kiro "
_TRUSTED = "sh -c 'entire hooks *"  # a prefix, so that no quote closes it
_TRUSTED_KEY = "kiroAgent.trustedCommands"


class HookFiles:
    """The files with hooks in one repository. The methods raise OSError and EntireError."""

    def __init__(self, root: str) -> None:
        self._agent = os.path.join(root, ".kiro", "agents", "entire.json")
        self._folder = os.path.join(root, ".kiro", "hooks")
        self._settings = os.path.join(root, ".vscode", "settings.json")

    def installed(self) -> bool:
        """Tell whether hooks of Kiro CLI or of Kiro IDE are there."""
        agent = self._read(self._agent, forgiving=True)
        of_cli = any(
            _has_command(values.items(agent, "hooks", event), verb) for verb, event in VERBS.items()
        )
        return of_cli or any(os.path.isfile(self._ide_file(name)) for name in _OF_IDE)

    def install(self, *, force: bool = False) -> int:
        """Install what is missing, with ``force`` all; return how many hooks were written."""
        count = self._install_agent(force=force)
        for name, (verb, event) in _OF_IDE.items():
            count += self._install_ide_hook(name, verb, event, force=force)
        return count

    def trust(self) -> None:
        """Have the IDE run the hooks without asking.

        Raises EntireError where its settings have comments or the like: a person has to add it.
        """
        settings = self._read(self._settings)
        trusted = settings.get(_TRUSTED_KEY)
        commands = list(trusted) if isinstance(trusted, list) else []
        if _TRUSTED not in commands:
            _write(self._settings, {**settings, _TRUSTED_KEY: [*commands, _TRUSTED]}, 0o644)

    def uninstall(self) -> None:
        """Remove what ``install`` and ``trust`` have written, and nothing else."""
        self._uninstall_agent()
        for name in _OF_IDE:
            with suppress(FileNotFoundError):
                os.unlink(self._ide_file(name))
        settings = dict(self._read(self._settings, forgiving=True))
        trusted = settings.get(_TRUSTED_KEY)
        if isinstance(trusted, list) and _TRUSTED in trusted:
            left = [command for command in trusted if command != _TRUSTED]
            del settings[_TRUSTED_KEY]
            if left:
                settings[_TRUSTED_KEY] = left
            _write(self._settings, settings, 0o644)

    def _uninstall_agent(self) -> None:
        """Take our commands out of the agent's file, and it away where nothing is left."""
        agent = self._read(self._agent, forgiving=True)
        ours = {_COMMAND + verb for verb in VERBS}
        left = {
            event: kept
            for event in values.mapping(agent, "hooks")
            if (
                kept := [
                    hook
                    for hook in values.items(agent, "hooks", event)
                    if hook.get("command") not in ours
                ]
            )
        }
        if left:
            _write(self._agent, {**agent, "hooks": left}, 0o600)
            return
        with suppress(FileNotFoundError):
            os.unlink(self._agent)

    def _install_agent(self, *, force: bool) -> int:
        agent = {} if force else dict(self._read(self._agent))
        hooks = dict(values.mapping(agent, "hooks"))
        count = 0
        for verb, event in VERBS.items():
            there = list(values.items(hooks, event))
            if not _has_command(there, verb):
                hooks[event] = [*there, {"command": _COMMAND + verb}]
                count += 1
        if count:
            known = {"name": "entire", "tools": _TOOLS, **agent}
            _write(self._agent, {**known, "hooks": hooks}, 0o600)
        return count

    def _install_ide_hook(self, name: str, verb: str, event: str, *, force: bool) -> int:
        command = f"sh -c '{_COMMAND}{verb} </dev/null'"
        hook = {
            "enabled": True,
            "name": f"entire-{name}",
            "description": f"Tells Entire of {event}",
            "version": "1",
            "when": {"type": event},
            "then": {"type": "runCommand", "command": command},
        }
        path = self._ide_file(name)
        if not force:
            there = self._read(path, forgiving=True)
            if there.get("when") == hook["when"] and there.get("then") == hook["then"]:
                return 0
        _write(path, hook, 0o600)
        return 1

    def _ide_file(self, name: str) -> str:
        return os.path.join(self._folder, f"entire-{name}.kiro.hook")

    def _read(self, path: str, *, forgiving: bool = False) -> Mapping[str, Any]:
        try:
            content = read_file(path)
        except FileNotFoundError:
            return {}
        try:
            found = json.loads(content or b"{}")
        except (ValueError, RecursionError) as exc:
            if forgiving:
                return {}
            raise EntireError(f"{path} is no JSON, and is left as it is: {exc}") from None
        if not isinstance(found, dict) and not forgiving:
            raise EntireError(f"{path} is no JSON object, and is left as it is")
        return found if isinstance(found, dict) else {}


def _has_command(hooks: Any, verb: str) -> bool:
    return any(hook.get("command") == _COMMAND + verb for hook in hooks)


def _write(path: str, content: Mapping[str, Any], mode: int) -> None:
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode & 0o777 if mode != 0o600 else mode
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    write_file(path, text.encode(errors="surrogatepass"), mode)
