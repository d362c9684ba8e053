"""One file a page. ``app.dashboard.serving`` imports each; ``navigation`` has the links to them."""
