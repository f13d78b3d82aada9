"""A stand-in for kiro-cli: same command line, output, exit codes and conversation store.

It calls no model. By default a turn appends a note to ``SORTIE_DEMO.md`` in its directory, prints
an answer as Kiro does, keeps the conversation in Kiro's v1 store and closes with a credits trailer.
Agent files and their hooks are obeyed as Kiro obeys them; ``acp`` does the same turns behind the
Agent Client Protocol.
Directives ask for something else; ``sortie-kiro-sim --help`` lists them all, from ``directives``.
They stand in the prompt, on lines such as ``sim: delay=2 exit=1``, or in ``KIRO_SIM_DELAY=2``; the
environment, which is the operator's, beats the prompt, which may be a stranger's.
A directive that is unknown or malformed ends the turn with exit status 2 and says why, since a test
with a typing error in it must not pass.

Standard library only, without ``typing``, ``dataclasses`` and ``argparse``: a turn has to start in
some 30 ms, so that fifty agents do. What is about earlier conversations, and ``acp``, whose process
lives longer, are imported where they are needed and may import more.
"""

from sortie.kiro.simulator.program import main

__all__ = ["main"]
