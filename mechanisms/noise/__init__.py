"""Exact noise on integer grids, from coins in 64-bit integers on fresh keystreams."""
