"""Runs of networks at the size of a paper, and the storage of their results."""
