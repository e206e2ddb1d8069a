"""The code that pages, experiments and benchmarks share, in rooms: page, scores, data,
models, rivals, runs.
"""

# the media type of the claims that a cell records
MEDIA = "application/vnd.sgmc.claims+json"
