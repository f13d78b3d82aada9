"""``sortie-kiro-sim acp``: the simulator behind the Agent Client Protocol, as ``kiro-cli acp`` is.

``link`` has the messages on stdin and stdout, ``server`` what is asked for, ``session`` one
conversation, ``turn`` one prompt, ``engines`` what Kiro's two engines tell each in its own way, and
``faults`` what no agent should write. One thread reads, writes and works: what comes while it works
is looked at where a turn waits.
"""
