"""The experiments of the papers at full scale: ``python -m experiments list | run NAME``, one experiment a file."""

EXPERIMENTS = (
    "mnist",
    "report",
    "uncertainty",
    "noise",
    "fashion",
    "steps",
    "cifar",
    "sgnuts",
    "neighbours",
    "weights",
    "renyi",
    "bandit",
    "ordering",
    "few",
    "fidelity",
    "modes",
)
