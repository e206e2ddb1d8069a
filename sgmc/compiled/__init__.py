"""Compiled kernels, for small models, where Python takes longer than the arithmetic;
nothing else in the package needs a compiler.
"""

from sgmc.compiled.in_place import CompiledInPlace
from sgmc.compiled.sghmc import CompiledSGHMC

__all__ = ["CompiledInPlace", "CompiledSGHMC"]
