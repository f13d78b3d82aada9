"""The HTTP surface: health, metrics, state, commands, from what the composition root hands in.

``app`` and ``server`` are made of libraries that take long to load, and the rest is not, so nothing
is imported here.
"""
