"""The HTTP surface of a process of several workflows: each below a path, and all at the root."""
