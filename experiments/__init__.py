"""The experiments of the papers at full scale: ``python -m experiments list | run
NAME``, one experiment a file.
"""

EXPERIMENTS = (
    "mnist",
    "report",
    "figure5",
    "figure5_around",
    "uncertainty",
    "falling",
    "noise",
    "fashion",
    "fashion_reported",
    "steps",
    "held",
    "cifar",
    "cifar_hour",
    "sgnuts",
    "trees",
    "neighbours",
    "weights",
    "renyi",
    "bandit",
    "ordering",
    "few",
    "fidelity",
    "modes",
    "recommender",
    "recommender_100k",
)

# Those whose seeds are runs of their own, each in files of its own, so that several can
# go at once.
BY_SEED = (
    "mnist",
    "report",
    "figure5",
    "figure5_around",
    "noise",
    "fashion",
    "fashion_reported",
    "steps",
    "cifar",
    "cifar_hour",
    "neighbours",
    "weights",
    "renyi",
    "bandit",
    "ordering",
    "few",
    "held",
    "trees",
)
