"""Saving a run and going on with it."""

from sgmc.checkpoints.files import (
    Checkpoint,
    CheckpointError,
    read_whole,
    replace_file,
)
from sgmc.checkpoints.fingerprints import brief_fingerprint, fingerprint

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "brief_fingerprint",
    "fingerprint",
    "read_whole",
    "replace_file",
]
