"""What only the pages use: checked claims, figures, tables, data sets, small
statistics.
"""

MEDIA = "application/vnd.sgmc.claims+json"  # of what a cell records of its claims
