"""From data and a model to a potential with minibatch gradients."""

from sgmc.posteriors.base import DataPotential, HeldMinibatch, Posterior
from sgmc.posteriors.control_variates import control_variates
from sgmc.posteriors.factorisation import MatrixFactorisation
from sgmc.posteriors.likelihoods import Bernoulli, Gaussian, Likelihood, Softmax, SoftTargets
from sgmc.posteriors.linear import LinearModel, LinearRegression, LogisticRegression
from sgmc.posteriors.models import NamedPosterior, Parameters
from sgmc.posteriors.network import NetworkPosterior
from sgmc.posteriors.scale_mixture import ScaleMixtureNetwork
from sgmc.posteriors.shards import Shard, shards

__all__ = [
    "Bernoulli",
    "DataPotential",
    "Gaussian",
    "HeldMinibatch",
    "Likelihood",
    "LinearModel",
    "LinearRegression",
    "LogisticRegression",
    "MatrixFactorisation",
    "NamedPosterior",
    "NetworkPosterior",
    "Parameters",
    "Posterior",
    "ScaleMixtureNetwork",
    "Shard",
    "SoftTargets",
    "Softmax",
    "control_variates",
    "shards",
]
