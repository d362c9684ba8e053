"""What several query kinds share."""
