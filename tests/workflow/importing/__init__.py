"""Workflow files of other programs as ours."""
