"""A stand-in for kiro-cli. This module stays empty, so that the simulator starts fast."""
