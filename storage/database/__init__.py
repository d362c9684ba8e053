"""The engine of either database, transactions, tables, compiled statements and migrations."""
