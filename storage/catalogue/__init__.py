"""Datasets, their descriptions and versions, and the files that they name."""
