"""How far draws are from a reference, and how few of them do."""

from sgmc.fidelity.distances import (
    NotMixedError,
    agreement,
    bin_mixtures,
    check_mixed,
    error_floor,
    expected_distance,
    function_space_rhat,
    predictive_distance,
    refuse_unmixed,
)
from sgmc.fidelity.thinning import herd, thin

__all__ = [
    "NotMixedError",
    "agreement",
    "bin_mixtures",
    "check_mixed",
    "error_floor",
    "expected_distance",
    "function_space_rhat",
    "herd",
    "predictive_distance",
    "refuse_unmixed",
    "thin",
]
