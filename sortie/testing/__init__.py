"""Conformance kits: checks to which the authors of adapters hold theirs."""
