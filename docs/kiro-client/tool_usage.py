"""Let Kiro use tools, see which it has used and what came of them, and end it where it hangs."""

import anyio

from sortie.kiro import (
    AssistantMessage,
    KiroAgentOptions,
    KiroSDKError,
    ResultMessage,
    TextBlock,
    ToolResultMessage,
    ToolUseBlock,
    query,
)

OPTIONS = KiroAgentOptions(allowed_tools=["Read", "Write", "Bash"], timeout=600)


async def main() -> None:
    try:
        async for message in query(prompt="Add a README to this project", options=OPTIONS):
            match message:
                case AssistantMessage(content=blocks):
                    for block in blocks:
                        match block:
                            case TextBlock(text=text):
                                print(text)
                            case ToolUseBlock(name=name, input=arguments):
                                print(f"uses {name}: {dict(arguments)}")
                case ToolResultMessage(block=result):
                    print("failed" if result.is_error else "done", result.content)
                case ResultMessage(files_modified=files):
                    print("modified:", ", ".join(files))
                case _:
                    pass
    except KiroSDKError as error:
        print(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    anyio.run(main)
