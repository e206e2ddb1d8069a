"""The distributions that other libraries were measured to sample, compared with exact
laws computed here.

A driver (``conformance/drivers``) stores moments or the linear map of a step; for each
library a module of this folder says which law its code has, as read, and which its
documentation promises. A verdict compares both, and the target's.
"""

from booklib.conformance.verdicts import (
    TESTS,
    Laws,
    Problem,
    Report,
    Verdict,
    cells_of,
    judge,
    laws_of,
    reports,
)

__all__ = [
    "TESTS",
    "Laws",
    "Problem",
    "Report",
    "Verdict",
    "cells_of",
    "judge",
    "laws_of",
    "reports",
]
