"""The composition root: it alone knows every part, reads the clock and owns the signals.

``loading`` and ``surveying`` are for commands that only look; ``life`` is the daemon itself, with
all that it needs to be imported, so nothing is imported here.
"""
