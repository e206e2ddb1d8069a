"""The reference of the live lab: what its scripts compute, in plain Python, operation
by operation: + − × ÷ √, comparisons, whole numbers.

Every algorithm takes its noise as an argument, so that recorded numbers can be fed. The
scripts equal it bit for bit, and it equals the package ``sgmc`` to rounding; both are
tested."""

from lab.reference.algorithms import ALGORITHMS
from lab.reference.landscapes import LANDSCAPES

__all__ = ["ALGORITHMS", "LANDSCAPES"]
