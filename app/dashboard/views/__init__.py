"""The pages, one file each, which ``app.dashboard.serving`` imports to add their routes."""
