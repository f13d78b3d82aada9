"""Tests of the tracker that is Jira."""
