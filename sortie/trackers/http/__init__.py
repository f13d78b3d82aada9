"""What trackers over HTTP share; it knows no provider. See the README of this folder.

Import its modules where a tracker is opened, not in the ``__init__`` of an adapter's folder: they
load an HTTP library, which commands that only read settings do without.
"""
