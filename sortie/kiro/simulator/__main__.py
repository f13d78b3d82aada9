"""Runs the simulator as ``python -m sortie.kiro.simulator``."""

from sortie.kiro.simulator import main

main()
