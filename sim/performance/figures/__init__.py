"""What the papers claim beside what this project finds, the study of sums in switches: docs/measurements/papers.md."""
