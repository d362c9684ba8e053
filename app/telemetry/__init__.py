"""Log lines and counters, made of public facts alone."""
