"""The loop over a kernel, and the checks of a run before it starts and after it
ends.
"""
