"""The report's grid of SGHMC, widened around a corner, each setting tried in full."""

from experiments import report

EXPERIMENT = report.compared("report_wider", report.wider, shorter=1)
