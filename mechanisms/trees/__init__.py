"""Public decision trees: what a request may send, checked, flattened and evaluated."""
