"""GitHub and GitHub Enterprise Server."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sortie.forges import Forge, ForgeAdapter, ForgeContext


def open_forge(context: ForgeContext) -> AbstractAsyncContextManager[Forge]:
    """Hold the client open for as long as the forge is."""
    from sortie.forges.github.forge import opened  # loads an HTTP library

    return opened(context)


ADAPTER = ForgeAdapter(kind="github", open=open_forge)
