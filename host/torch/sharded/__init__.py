"""MiCS: a model sharded over groups of ranks."""
