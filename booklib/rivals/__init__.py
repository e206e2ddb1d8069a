"""The methods that samplers are compared with. Most of them are not chains, but yield
draws of weights all the same, so predictions and scores are computed as for a chain.

laplace-torch and torch-uncertainty, which have most of them, wrap a module. Here each
takes the posterior that a chain takes, and is tested against an exact law.
"""

from booklib.rivals.constant_sgd import constant_sgd
from booklib.rivals.dropout import dropout
from booklib.rivals.ensembles import ensemble
from booklib.rivals.laplace import laplace
from booklib.rivals.snapshots import snapshots
from booklib.rivals.swag import swag
from booklib.rivals.variational import variational

__all__ = [
    "constant_sgd",
    "dropout",
    "ensemble",
    "laplace",
    "snapshots",
    "swag",
    "variational",
]
