"""What the reproduction report tried around its Figure 5, as its program has it."""

from experiments import report

settings = report.around
EXPERIMENT = report.compared("figure5_around", settings)
