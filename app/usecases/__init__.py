"""The use cases: each is one thing that a person can do, as a function of values."""
