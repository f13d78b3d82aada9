"""A stand-in for kiro-cli: same command line, output, exit codes and conversation store.

It calls no model. By default a turn appends a note to ``SORTIE_DEMO.md`` in its directory, prints
an answer as Kiro does, keeps the conversation in Kiro's v1 store and closes with a credits trailer.
Directives ask for something else; ``sortie-kiro-sim --help`` lists them.
They stand in the prompt, on lines such as ``sim: delay=2 exit=1``, or in ``KIRO_SIM_DELAY=2``. The
environment, which the operator sets, beats the prompt, which may be a stranger's text.
An unknown or malformed directive ends the turn with exit status 2, so that a test with a typing
error in it fails.

Standard library only: a turn has to start in some 30 ms, so that fifty agents do.
"""

from sortie.kiro.simulator.program import main

__all__ = ["main"]
