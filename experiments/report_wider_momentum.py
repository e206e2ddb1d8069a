"""The report's grid of SGD with momentum, widened around a corner, tried in full."""

from experiments import report

EXPERIMENT = report.compared("report_wider_momentum", report.wider_momentum, shorter=1)
