"""A session of Codex."""

from __future__ import annotations

from collections.abc import Callable

import trio

from sortie.agents.codex.opening import ThreadOpening, open_thread
from sortie.agents.codex.process import CodexProcess
from sortie.agents.protocol_session import Opened, ProtocolSession


class CodexSession(ProtocolSession[CodexProcess]):
    """A session; its id is that of a thread of Codex."""

    def __init__(
        self, opening: ThreadOpening, nursery: trio.Nursery, new_process: Callable[[], CodexProcess]
    ) -> None:
        resume = opening.params.resume_session_id if opening.settings.resume else None
        super().__init__(resume, nursery, new_process)
        self._opening = opening

    async def _open_in(self, process: CodexProcess, resume: str | None) -> Opened:
        return await open_thread(process, self._opening, resume)
