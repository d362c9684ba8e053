"""Sources of records: tables of PostgreSQL and files of a folder that the operator has named."""
