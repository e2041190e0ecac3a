"""Pools from outside: files of predictions, logs of harnesses and rows of datasets, joined question by question."""
