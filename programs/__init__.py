"""What composes the signatures into programs: the selector, its roles, the run over pools, the command."""
