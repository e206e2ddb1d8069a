"""SGD with momentum with stronger priors and α tuned, each setting tried in full."""

from experiments import report

EXPERIMENT = report.compared("report_momentum", report.stronger_momentum, shorter=1)
