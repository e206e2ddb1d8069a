"""The coursework: assignments, their release, and the grading of what comes back."""
