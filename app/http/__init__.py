"""The protocol: access, strict JSON, the order of checks, problem replies, OpenAPI."""
