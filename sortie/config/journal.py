"""The settings of ``journal``: how long what the scheduler was told is kept."""

from __future__ import annotations

from typing import Annotated

from sortie.config.block import Block
from sortie.config.values import whole


class JournalSettings(Block):
    """For how many days the scheduler's events are kept, and how many bytes of them; 0 days, or 0
    bytes, for none."""

    keep_days: Annotated[int, whole(0, 36_500)] = 7
    max_bytes: Annotated[int, whole(0)] = 256 << 20
