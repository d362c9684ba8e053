"""Private distances between the values of categorical attributes, learned from their context."""
