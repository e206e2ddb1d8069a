"""The report's grid, widened around two corners, and each setting tried in full."""

from experiments import report

EXPERIMENT = report.compared("report_wider", report.wider, shorter=1)
