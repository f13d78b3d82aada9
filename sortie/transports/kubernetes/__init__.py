"""Runs in pods of Kubernetes, one pod for each issue."""
