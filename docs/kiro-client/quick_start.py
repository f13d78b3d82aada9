"""Ask Kiro one question, and see what the answer cost."""

import anyio

from sortie.kiro import AssistantMessage, ResultMessage, query


async def main() -> None:
    async for message in query(prompt="What is 2 + 2?"):
        match message:
            case AssistantMessage(text=text) if text:
                print(text)
            case ResultMessage(credits=credits, seconds=seconds):
                print(f"({credits} credits, {seconds} s)")
            case _:
                pass


if __name__ == "__main__":
    anyio.run(main)
