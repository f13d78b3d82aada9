"""Tests of the port to services that tell of changes by webhooks."""
