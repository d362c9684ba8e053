"""The writer of the ledger, and the layouts of what its hash chains bind."""
