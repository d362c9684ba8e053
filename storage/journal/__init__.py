"""The journal: chained facts of what gives a charge its meaning, and how they are committed."""
