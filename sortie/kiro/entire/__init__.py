"""``entire-agent-kiro``: records sessions of Kiro CLI and Kiro IDE for Entire.

Entire runs it for each call, by version 1 of its protocol for external agents; ``program`` has the
calls, ``repository`` the places, ``hooks`` what is installed into a repository, ``lifecycle`` what
Kiro's hooks mean, and ``transcripts`` what a recorded session holds. What is slow to import is
imported by the call that needs it: Kiro waits for each hook.
"""

from sortie.kiro.entire.program import main

__all__ = ["main"]
