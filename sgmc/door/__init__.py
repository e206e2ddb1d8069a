"""The loop over a kernel, and what checks a run before it starts and after it ends."""
