"""The ``kiro`` block of WORKFLOW.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictBool, StrictStr, model_validator

from sortie.kiro.headless.arguments import ChatOptions

DEFAULT_COMMAND = "kiro-cli"


def _word(value: str) -> str:
    """Return the trimmed value; it becomes an argument, so it must be printable and not empty."""
    word = value.strip()
    if not word:
        raise ValueError("must not be empty")
    if not word.isprintable():
        raise ValueError("must not contain control characters")
    return word


def _value(value: str) -> str:
    word = _word(value)
    if word.startswith("-"):
        raise ValueError("must not begin with '-': kiro-cli would take it for an option")
    return word


def _tool(value: str) -> str:
    tool = _word(value)
    if "," in tool:
        raise ValueError("must be one tool's name, without commas; give each tool its own entry")
    return tool


class KiroSettings(BaseModel):
    """What every Kiro turn is run with; the keys are explained in this folder's README."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: Annotated[StrictStr, AfterValidator(_value)] | None = None
    trust_all_tools: StrictBool = False
    trust_tools: tuple[Annotated[StrictStr, AfterValidator(_tool)], ...] = ()
    agent: Annotated[StrictStr, AfterValidator(_value)] | None = None

    @model_validator(mode="after")
    def _has_one_trust_mode(self) -> Self:
        self.options()
        return self

    def options(self) -> ChatOptions:
        """Return the settings as the command line needs them."""
        return ChatOptions(
            model=self.model,
            agent=self.agent,
            trust_all_tools=self.trust_all_tools,
            trust_tools=self.trust_tools,
        )


READING_TOOLS = ("read", "grep", "glob")
"""Tools that change nothing."""


SHELL_TOOLS = frozenset({"shell", "execute_bash", "execute_cmd"})
"""What versions call the tool that runs commands."""


def tools_hindrance(settings: KiroSettings) -> str | None:
    """Return why an agent could run no command, None where it may; a custom agent decides so in a
    file that is not read here."""
    may = settings.trust_all_tools or settings.agent is not None
    if may or not SHELL_TOOLS.isdisjoint(settings.trust_tools):
        return None
    return "which calls tools by commands of its shell: add shell to kiro.trust_tools"


def read_only(settings: KiroSettings) -> KiroSettings:
    """Return the settings with which every tool is refused that does not only read.

    A custom agent may trust tools of its own, so that none is named.
    """
    return settings.model_copy(
        update={"trust_all_tools": False, "trust_tools": READING_TOOLS, "agent": None}
    )


def warn(settings: KiroSettings) -> Sequence[tuple[str, str]]:
    """Return what ``validate`` should warn about."""
    if settings.trust_all_tools or settings.trust_tools:
        return ()
    return (
        (
            "kiro.trust_tools",
            "neither trust_all_tools nor trust_tools is set: an unattended run will be refused"
            " its tools; list the tools it may use, such as [read, write, shell]",
        ),
    )
