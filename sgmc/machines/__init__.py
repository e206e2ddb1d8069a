"""A posterior on many machines: parts of the data, and a cluster."""

from sgmc.machines.shards import Shard, shards

__all__ = ["Shard", "shards"]
