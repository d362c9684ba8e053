"""The only SQL and the only files: ledger, users, datasets, prepared arrays, stored answers."""
