"""The register map: its model, the reader of registers.toml, and one writer per language."""
