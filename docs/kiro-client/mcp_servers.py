"""Give Kiro MCP servers for one question; under an API key it has none, and the client says so."""

import os

import anyio

from sortie.kiro import AssistantMessage, KiroAgentOptions, OptionError, query

OPTIONS = KiroAgentOptions(
    mcp_servers={
        "filesystem": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
        },
        "github": {
            "type": "stdio",
            "command": "npx",
            "args": ["-y", "@modelcontextprotocol/server-github"],
            "env": {"GITHUB_TOKEN": os.environ.get("GITHUB_TOKEN", "")},
        },
    },
    allowed_tools=["@filesystem", "@github"],
)


async def main() -> None:
    try:
        async for message in query(prompt="List the files in /tmp", options=OPTIONS):
            if isinstance(message, AssistantMessage) and message.text:
                print(message.text)
    except OptionError as error:
        print(error)


if __name__ == "__main__":
    anyio.run(main)
