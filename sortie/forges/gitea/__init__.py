"""Gitea and Forgejo."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from sortie.forges import Forge, ForgeAdapter, ForgeContext


def open_forge(context: ForgeContext) -> AbstractAsyncContextManager[Forge]:
    """Hold the client open for as long as the forge is."""
    from sortie.forges.gitea.forge import opened  # loads an HTTP library

    return opened(context)


ADAPTER = ForgeAdapter(kind="gitea", open=open_forge)
