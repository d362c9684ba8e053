"""The bodies, amounts, moments, descriptions and refusals that a client sees."""
