"""A run over pools: bounded concurrency, metered calls, and a directory that is its only state."""
