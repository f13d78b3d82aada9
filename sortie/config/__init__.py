"""Settings: the front matter of a WORKFLOW.md, decoded whole into frozen values; pure.

``references`` and ``context`` are for commands that need one path of a file; they are spared
pydantic, so nothing is imported here.
"""
