"""Mutation runs: small mistakes are made one at a time, and the nearest tests must notice."""
