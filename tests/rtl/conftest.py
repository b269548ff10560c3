"""Modules of this folder are found from the folders below it, too."""
