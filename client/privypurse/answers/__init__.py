"""Answers of paid queries, one file per kind of answer, and averages of tables."""
