"""What pages, experiments and benchmarks share, in rooms: page, scores, data, models,
rivals, runs, conformance.
"""

MEDIA = "application/vnd.sgmc.claims+json"  # of what a cell records of its claims
