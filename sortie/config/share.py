"""What a workflow gets of the slots of a process in which several run."""

from __future__ import annotations

from typing import Annotated

from sortie.config.block import Block
from sortie.config.values import whole


class ShareSettings(Block):
    """``guaranteed`` slots are kept for this workflow; the rest is divided by ``weight``."""

    weight: Annotated[int, whole(1, 1000)] = 1
    guaranteed: Annotated[int, whole(0, 1000)] = 0
