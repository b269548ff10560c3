"""Verilated NICs as objects of this process: memory, registers and frames."""
