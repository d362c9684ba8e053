"""Accounts, charges, settlements and replays."""
