"""The experiments of the papers at full scale: ``python -m experiments list | run NAME``, one experiment a file."""

EXPERIMENTS = (
    "mnist",
    "report",
    "uncertainty",
    "falling",
    "noise",
    "fashion",
    "fashion_reported",
    "steps",
    "cifar",
    "cifar_hour",
    "sgnuts",
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

# Those whose seeds are runs of their own, each in files of its own, so that several can go at once.
BY_SEED = (
    "mnist",
    "report",
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
)
