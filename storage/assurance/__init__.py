"""Verification, heads, rollback, receipts, backup and counts of refusals."""
