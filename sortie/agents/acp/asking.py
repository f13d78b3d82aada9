"""Whether an agent asks before it does what the rules deny, by its current mode; pure.

Agents differ in the names of their modes and in what they ask about in each. Rules only answer
questions: what an agent does without asking, no rule can deny. Almost no agent asks before it
reads, so reading is left out here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from sortie.agents.acp.settings import ALLOW_ALL, ASK_NOTHING, AcpSettings
from sortie.agents.exits import Failure
from sortie.agents.permissions import Ruling
from sortie.json_rpc import values
from sortie.model import ErrorKind

CHANGING_KINDS = frozenset({"edit", "delete", "move", "execute", "fetch"})
"""The kinds of tools that change something, or send something away."""

_FILES = CHANGING_KINDS - {"fetch"}
_NOTHING: frozenset[str] = frozenset()


class Unasked(Struct, frozen=True):
    """The kinds of CHANGES that a mode does not ask about, in the workspace and outside of it."""

    inside: frozenset[str] = _NOTHING
    outside: frozenset[str] = _NOTHING

    def __and__(self, other: Unasked) -> Unasked:
        return Unasked(self.inside & other.inside, self.outside & other.outside)

    def __bool__(self) -> bool:
        return bool(self.inside or self.outside)

    def __str__(self) -> str:
        places = (("inside", self.inside), ("outside", self.outside))
        return " and ".join(f"{', '.join(sorted(k))} {p} of the workspace" for p, k in places if k)


_ALL = Unasked(CHANGING_KINDS, CHANGING_KINDS)
_ASKS = Unasked()
_SANDBOXED = Unasked(inside=_FILES)
_COPILOT = "https://agentclientprotocol.com/protocol/session-modes#"

_CLAUDE: Mapping[str, Unasked] = {
    "default": _ASKS,
    "plan": _ASKS,
    "dontAsk": _ASKS,  # it does nothing that it would ask about
    "acceptEdits": _SANDBOXED,  # also commands such as mkdir, mv and rm
    "auto": _ALL,  # another model decides
    "bypassPermissions": _ALL,
}
_UNKNOWN: Mapping[str, Unasked] = dict.fromkeys(ASK_NOTHING, _ALL)

ASKING_MODES: Mapping[str, Mapping[str, Unasked]] = {
    "@agentclientprotocol/claude-agent-acp": _CLAUDE,
    "@zed-industries/claude-agent-acp": _CLAUDE,
    "gemini-cli": {
        "default": _ASKS,
        "plan": _ASKS,
        "autoEdit": Unasked(inside=_FILES - {"execute"}),
        "yolo": _ALL,
    },
    "Copilot": {
        f"{_COPILOT}agent": _ASKS,
        f"{_COPILOT}plan": _ASKS,
        f"{_COPILOT}autopilot": _ALL,
    },
    "@agentclientprotocol/codex-acp": {
        "workspace-write": _SANDBOXED,
        "read-only": _ASKS,
        "agent": _ALL,  # another model decides
        "agent-full-access": _ALL,
    },
    "codex-acp": {"auto": _SANDBOXED, "read-only": _ASKS, "full-access": _ALL},
    "OpenCode": {},  # its modes have nothing to do with it: see opencode_permission
}
"""By the name that an agent gives itself; the modes that may be chosen come in that order."""

_OWN = "its command line, environment or configuration gives it leave"
_NEVER_CHOSEN = frozenset({"plan", "dontAsk"})
"""In these modes an agent does not work, or not on what is allowed."""

_OPENCODE = "OpenCode"
_OPENCODE_PERMISSION = "OPENCODE_PERMISSION"
_OPENCODE_TOOLS: Mapping[str, tuple[str, ...]] = {
    "edit": ("edit", "delete", "move"),
    "bash": ("execute",),
    "webfetch": ("fetch",),
    "websearch": ("fetch",),
}


def denied_by(settings: AcpSettings) -> Unasked:
    """Return what an agent has to ask about, since it is denied, or people are to be asked.

    A kind that is denied only because no rule names it counts, unless the settings name a mode:
    ``acp.mode: yolo`` without any denial means that mode.
    """
    chosen = settings.mode is not None or ALLOW_ALL in settings.options
    rules = settings.permissions
    return Unasked(
        frozenset(_denied(rules.inside, chosen)), frozenset(_denied(rules.outside, chosen))
    )


def _denied(rulings: Mapping[str, Ruling], chosen: bool) -> Iterator[str]:
    for kind in CHANGING_KINDS:
        ruling = rulings.get(kind) or rulings.get("default") or ("allow" if chosen else "deny")
        if ruling != "allow":
            yield kind


def asking_variables(settings: AcpSettings, env: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables that have agents ask about what is denied; none where nothing is.

    OpenCode takes its permissions from one before those of its files. Copilot takes leave for all
    from another, and tells nothing of that.
    """
    denied = denied_by(settings)
    if not denied:
        return {}
    names = [n for n, kinds in _OPENCODE_TOOLS.items() if not denied.inside.isdisjoint(kinds)]
    if denied.outside:
        names.append("external_directory")
    try:
        given = json.loads(env.get(_OPENCODE_PERMISSION) or "{}")
    except (ValueError, RecursionError):
        given = None
    permission = {**(given if isinstance(given, dict) else {}), **dict.fromkeys(names, "ask")}
    return {_OPENCODE_PERMISSION: json.dumps(permission), "COPILOT_ALLOW_ALL": "false"}


class Asking:
    """What one process of an agent asks about. ``mode`` is the last reported one."""

    def __init__(self, agent: str, settings: AcpSettings) -> None:
        self.mode: str | None = None
        self._agent = agent
        self._settings = settings
        self._denied = denied_by(settings)
        self._allows_all = False
        self._offered: list[str] = []

    def take(self, body: Mapping[str, Any]) -> None:
        """Take what says how the session stands: an answer of the agent's, or an update."""
        modes = values.mapping(body, "modes")
        told = values.text(body, "currentModeId") or values.text(body, "modeId")
        self.mode = told or values.text(modes, "currentModeId") or self.mode
        self._offer(values.text(mode, "id") for mode in values.items(modes, "availableModes"))
        for option in values.items(body, "configOptions"):
            value = option.get("currentValue")
            if option.get("category") == "mode" and isinstance(value, str):
                self.mode = value
                offered = values.items(option, "options")
                self._offer(values.text(each, "value") for each in offered)
            elif option.get("id") == ALLOW_ALL:
                self._allows_all = value in ("on", True)

    def mode_to_set(self) -> str | None:
        """Return the mode that asks about what is denied; None where the present one does, or
        the settings name one, or there is none."""
        if self._settings.mode is not None or not self._unasked(self.mode):
            return None
        return self._asking_mode()

    def must_not_allow_all(self) -> bool:
        """Tell whether the option is to be taken back with which nothing is asked about."""
        return self._allows_all and bool(self._denied)

    def refusal(self) -> Failure | None:
        """Return why the agent must not work as the session stands; None where it may."""
        if self._allows_all and self._denied:
            return self._failure(self._denied, f"its option {ALLOW_ALL} is on")
        if unasked := self._unasked(self.mode):
            return self._failure(unasked, f"its mode is {(self.mode or 'not told')[:80]}")
        return None

    def ran_unasked(self, kind: str, *, outside: bool) -> Failure | None:
        """Return why a tool must not have run that was not asked about; None where it may.

        An agent that is to ask may have leave by its own configuration, and tells nothing of that.
        """
        denied = self._denied.outside if outside else self._denied.inside
        if kind not in denied or kind not in self._always_asked(outside=outside):
            return None
        it = frozenset({kind})
        where = Unasked(outside=it) if outside else Unasked(inside=it)
        return self._failure(where, _OWN)

    def _always_asked(self, *, outside: bool) -> frozenset[str]:
        """Return the kinds of tools of which each use is asked about; only what was seen."""
        if self._agent == _OPENCODE:
            return CHANGING_KINDS
        if outside or self._agent not in ASKING_MODES:  # agents keep notes of their own outside
            return _NOTHING
        return _FILES if self._agent == "Copilot" else _FILES - {"execute"}

    def _offer(self, modes: Iterable[str | None]) -> None:
        self._offered = [mode for mode in modes if mode is not None] or self._offered

    def _unasked(self, mode: str | None) -> Unasked:
        """Return what is denied, and not asked about in a mode; one of an agent that is known, and
        has modes, asks about nothing where it is not known itself."""
        modes = ASKING_MODES.get(self._agent, _UNKNOWN)
        unknown = _ALL if modes and modes is not _UNKNOWN else _ASKS
        return modes.get(mode or "", unknown) & self._denied

    def _asking_mode(self) -> str | None:
        for mode in ASKING_MODES.get(self._agent, {}):
            if mode.rpartition("#")[2] in _NEVER_CHOSEN or self._unasked(mode):
                continue
            if mode in self._offered or not self._offered:
                return mode
        return None

    def _failure(self, unasked: Unasked, why: str) -> Failure:
        mode = self._asking_mode()
        cure = f"set acp.mode to {mode}" if mode else "set acp.mode to a mode that asks"
        if why.startswith("its option"):
            cure = f"take {ALLOW_ALL} out of acp.options and of the agent's command line"
        elif why == _OWN:
            cure = "take that leave away"
        message = (
            f"acp.permissions denies {unasked}, but the agent does not ask about that: {why};"
            f" {cure}, or allow it in acp.permissions"
        )
        return Failure(ErrorKind.ADAPTER_SETTINGS, message)
