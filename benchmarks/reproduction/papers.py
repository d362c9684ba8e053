"""The four papers, as the report names them."""

DAMPENING = "Local Dampening (PVLDB, selection)"
MULTI = "Multi-objective selection (PrivPareto, PrivAgg)"
DISTANCES = "Distance learning in categorical data (DP-DILCA)"
NOISE = "Instance-based noise (Canard, Olivier, Quertier)"
