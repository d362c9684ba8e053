"""The vocabulary of all mechanisms: domains, records, candidates, sensitivity, randomness."""
