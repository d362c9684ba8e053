"""Private clustering of records with categorical attributes; only centres are released."""
