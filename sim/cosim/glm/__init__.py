"""Generalized linear models on simulated hardware around the embedded switch (docs/explanation/rtl-glm.md)."""
