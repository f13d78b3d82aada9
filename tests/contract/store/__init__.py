"""What every store does, whatever it is made of."""
