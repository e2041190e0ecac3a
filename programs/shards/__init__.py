"""One run in many pieces: a pool is cut into shards, each is run and committed by itself, and all are merged.

A shard is run as a pool is, in a run directory of its own. So everything that holds of a run holds of a shard.
"""
