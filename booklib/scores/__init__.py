"""Scores: numbers over samples and over seeds, and what they mean."""
