"""Compiled kernels, for small models, where Python takes longer than the arithmetic;
nothing else in the package needs a compiler.
"""

from sgmc.compiled.sghmc import CompiledSGHMC

__all__ = ["CompiledSGHMC"]
