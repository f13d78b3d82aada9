"""The checks, in the order in which they are made; importing this package registers them."""

from importlib import import_module

GROUPS = ("start", "turns", "ends", "stops", "processes", "output", "resume", "adoption", "hosts")

for _group in GROUPS:
    import_module(f"{__name__}.{_group}")
