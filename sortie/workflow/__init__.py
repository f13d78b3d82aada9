"""WORKFLOW.md: read it, watch it, render its prompt.

``front_matter`` and ``env_file`` are for commands that need one path of a file; they are spared
jinja2 and trio, so nothing is imported here.
"""
