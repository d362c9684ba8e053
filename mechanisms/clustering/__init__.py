"""Private clustering of records with categorical attributes; centres alone are released."""
