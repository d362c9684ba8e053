"""One file a change of the schema, each all or nothing."""
