"""What is not a chain, but yields draws of weights all the same, so that predictions
and scores are those of a chain.

laplace-torch and torch-uncertainty, which have most of them, wrap a module. Here each
takes the posterior that a chain takes, and is tested against an exact law.
"""

from sgmc.approximations.constant_sgd import constant_sgd
from sgmc.approximations.dropout import dropout
from sgmc.approximations.ensembles import ensemble
from sgmc.approximations.laplace import laplace
from sgmc.approximations.snapshots import snapshots
from sgmc.approximations.swag import swag
from sgmc.approximations.variational import variational

__all__ = [
    "constant_sgd",
    "dropout",
    "ensemble",
    "laplace",
    "snapshots",
    "swag",
    "variational",
]
