"""Figure 5 of the reproduction report: its published settings, and its own start."""

from experiments import report

settings = report.published
EXPERIMENT = report.compared("figure5", settings)
