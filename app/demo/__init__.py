"""A whole session against a real service of its own: ``./run demo``."""
