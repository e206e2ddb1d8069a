"""Hand out the assignments, and grade what comes back: see ``python -m
tools.coursework``.
"""
