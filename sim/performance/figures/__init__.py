"""What the papers claim beside what this project finds, and the study of sums in switches: docs/papers.md."""
