"""The tools that keep the book in order."""
