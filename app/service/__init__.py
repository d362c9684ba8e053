"""Wiring: start-up, stores, published heads, compiled kernels."""
