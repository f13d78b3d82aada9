"""What every transport keeps, written against the port alone."""
