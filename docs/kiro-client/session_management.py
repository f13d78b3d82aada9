"""List the conversations that Kiro has kept for a directory, go on with one, delete another."""

import anyio

from sortie.kiro import AssistantMessage, KiroSDKClient, SessionNotFoundError


async def main() -> None:
    async with KiroSDKClient() as client:
        await client.query("Remember the word blue")
        async for _ in client.receive_response():
            pass

        sessions = await client.list_sessions()
        for session in sessions:
            print(session.id, session.last_active, session.message_count)

        await client.resume_session(sessions[0].id)
        await client.query("Which word was it?")
        async for message in client.receive_response():
            if isinstance(message, AssistantMessage) and message.text:
                print(message.text)

        await client.delete_session(sessions[0].id)
        try:
            await client.resume_session(sessions[0].id)
        except SessionNotFoundError as error:
            print(error)


if __name__ == "__main__":
    anyio.run(main)
