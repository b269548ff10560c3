"""Generalized linear models on simulated hardware around the embedded switch (docs/rtl-glm.md)."""
