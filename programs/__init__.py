"""Programs composed of the signatures: the selector, its roles, the run over pools, the command."""
