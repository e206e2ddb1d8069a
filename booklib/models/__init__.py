"""Models that pages and experiments share."""
