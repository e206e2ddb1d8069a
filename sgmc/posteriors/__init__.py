"""From data and a model to a potential with minibatch gradients."""

from sgmc.posteriors.base import DataPotential, GaussianPrior
from sgmc.posteriors.likelihoods import Bernoulli, Gaussian, Likelihood, Softmax
from sgmc.posteriors.linear import LinearModel, LinearRegression, LogisticRegression
from sgmc.posteriors.network import NetworkPosterior

__all__ = [
    "Bernoulli",
    "DataPotential",
    "Gaussian",
    "GaussianPrior",
    "Likelihood",
    "LinearModel",
    "LinearRegression",
    "LogisticRegression",
    "NetworkPosterior",
    "Softmax",
]
