"""The composition root: makes the parts, connects them, and runs them as the daemon.

``workflow_file``, ``unusable_settings`` and ``dry_run`` are for commands that only look; they are
spared the imports of the rest, so nothing is imported here.
"""
