"""scikit-learn's interface: classifiers and regressors whose `fit` trains on workers.

    GLMClassifier(workers=8, bits=4).fit(X, y).predict(X)
    GLMClassifier(workers=8, runner=NetworkRunner(LabKind.SHM)).fit(X, y)  # sim.glm: processes behind a switch

A module of its own, as importing scikit-learn takes a second.
"""

from __future__ import annotations

from catchment.host.glm.classifier import GLMClassifier
from catchment.host.glm.regressor import GLMRegressor

__all__ = ["GLMClassifier", "GLMRegressor"]
