"""A process that can be drained, and leads nothing anyway."""

from __future__ import annotations

from sortie.web.drain import DrainStatus, DrainView


class FakeDrains:
    """Is drained at once."""

    draining = False

    def standing(self) -> DrainView | str:
        status: DrainStatus = "drained" if self.draining else "standby"
        return DrainView(daemon="3f9c02d1a7e84b56", status=status, leads=(), running=0)

    async def drain(self, *, draining: bool) -> DrainView | str | None:
        self.draining = draining
        return self.standing()
