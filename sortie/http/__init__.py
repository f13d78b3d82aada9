"""What trackers and forges over HTTP share; it knows no provider but by a module of its name.

Import its modules where a tracker or forge is opened, not in the ``__init__`` of an adapter's
folder: they load an HTTP library, which commands that only read settings do without.
"""
