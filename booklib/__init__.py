"""What only the pages use: checked claims, figures, tables, data sets, small
statistics.
"""
