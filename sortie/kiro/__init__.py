"""Kiro CLI for programs: a client, the conversations it keeps, and a stand-in for it.

``query``, ``query_sync`` and ``KiroSDKClient`` put prompts to Kiro under asyncio, trio or neither;
docs/kiro-client.md shows how. ``sortie.kiro.client`` is imported when one of its names is used, so
that the stand-in starts fast.
"""

TYPE_CHECKING = False  # importing typing for it would cost the stand-in a third of its start-up
if TYPE_CHECKING:
    from sortie.kiro.client import *  # noqa: F403
    from sortie.kiro.client import __all__ as __all__
else:

    def __getattr__(name):
        from importlib import import_module

        client = import_module("sortie.kiro.client")
        if name not in ("__all__", *client.__all__):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(client, name)
