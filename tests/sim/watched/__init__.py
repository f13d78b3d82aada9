"""Days of watched pull requests: scheduler and real effects over a forge that misbehaves."""
