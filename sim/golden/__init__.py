"""Slow, obvious reference models."""
