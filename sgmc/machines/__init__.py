"""A posterior on many machines: subposteriors of parts of the data, and a cluster."""

from sgmc.machines.shards import Shard, shards

__all__ = ["Shard", "shards"]
