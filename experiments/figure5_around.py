"""The settings that the report tried around its Figure 5, as its program has them."""

from experiments import report

settings = report.around
EXPERIMENT = report.compared("figure5_around", settings)
