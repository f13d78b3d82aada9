"""Go on with a conversation: the second prompt knows the first one and its answer."""

import anyio

from sortie.kiro import AssistantMessage, KiroAgentOptions, KiroSDKClient

OPTIONS = KiroAgentOptions(
    system_prompt="You are a helpful coding assistant",
    allowed_tools=["Read", "Bash"],
)

PROMPTS = ("What files are in this project?", "Which of them should I read first?")


async def main() -> None:
    async with KiroSDKClient(options=OPTIONS) as client:
        for prompt in PROMPTS:
            print(f"> {prompt}")
            await client.query(prompt)
            async for message in client.receive_response():
                if isinstance(message, AssistantMessage) and message.text:
                    print(message.text)


if __name__ == "__main__":
    anyio.run(main)
