"""What the reproduction report tried around its Figure 5: regularisation, weight decay
and annealing, as its program has them.

Everything else is as in :mod:`experiments.report`.
"""

from experiments import report

settings = report.around
EXPERIMENT = report.compared("figure5_around", settings)
