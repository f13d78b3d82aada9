"""The ``questions`` block: agents may ask the people of an issue, and wait for an answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sortie.config.block import Block
from sortie.config.values import choice, milliseconds


class QuestionsSettings(Block):
    """For how long an answer is waited for, and what happens then.

    With ``on_timeout`` ``hold`` the issue stays held; so it does where a question has no default.
    """

    timeout: Annotated[float, milliseconds(1000, 31_536_000_000)] = Field(
        86_400.0, alias="timeout_ms"
    )
    on_timeout: Annotated[Literal["default", "hold"], choice("default", "hold")] = "default"
