"""Proofs about the hardware: harnesses, and the runner that also shows that each can fail."""
