"""Several workflows in one process: what they share, and what keeps them apart."""
