"""Saving a run and going on with it."""

from sgmc.checkpoints.files import Checkpoint, CheckpointError, replace_file
from sgmc.checkpoints.fingerprints import fingerprint

__all__ = ["Checkpoint", "CheckpointError", "fingerprint", "replace_file"]
