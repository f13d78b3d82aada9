"""Build the command line of one headless Kiro turn."""

from __future__ import annotations

from msgspec import Struct

from sortie.model.invocation import Invocation, prompt_invocation

KEY_NAME = "KIRO_API_KEY"

WHOAMI = ("whoami",)


class ChatOptions(Struct, frozen=True, kw_only=True):
    """What stays the same for all turns of a session.

    An empty ``trust_tools`` trusts nothing. ``verbose`` is how much of its log Kiro shows, 0 to 3.
    With ``require_mcp`` Kiro exits with 3 where an MCP server of its agent does not start. Raises
    ValueError where both trust modes are asked for.
    """

    model: str | None = None
    agent: str | None = None
    trust_all_tools: bool = False
    trust_tools: tuple[str, ...] = ()
    verbose: int = 0
    require_mcp: bool = False

    def __post_init__(self) -> None:
        if self.trust_all_tools and self.trust_tools:
            raise ValueError("trust_all_tools and trust_tools are mutually exclusive")


def chat(options: ChatOptions, prompt: str, *, resume: bool | str) -> Invocation:
    """Return how to run ``prompt`` as one turn; exactly one trust mode is always named.

    ``resume`` goes on with the newest conversation of the directory, or with the one of that id.
    Kiro reads stdin only where no prompt stands on the command line.
    """
    arguments = ["chat", "--no-interactive", "--wrap", "never"]
    if options.verbose:
        arguments.append("-" + "v" * options.verbose)
    if isinstance(resume, str):
        arguments += ["--resume-id", resume]
    elif resume:
        arguments.append("--resume")
    if options.model is not None:
        arguments += ["--model", options.model]
    if options.agent is not None:
        arguments += ["--agent", options.agent]
    if options.require_mcp:
        arguments.append("--require-mcp-startup")
    if options.trust_all_tools:
        arguments.append("--trust-all-tools")
    else:
        arguments.append("--trust-tools=" + ",".join(options.trust_tools))
    return prompt_invocation(arguments, prompt, separated=False)
