"""Trainings of generalized linear models on workers behind a switch (docs/explanation/glm.md)."""
