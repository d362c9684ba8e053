"""What every mechanism speaks of: domains, records, candidates, sensitivity, randomness."""
