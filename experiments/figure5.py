"""Figure 5 of the reproduction report at its published settings and from its own start.

Everything else is as in :mod:`experiments.report`.
"""

from experiments import report

settings = report.published
EXPERIMENT = report.compared("figure5", settings)
