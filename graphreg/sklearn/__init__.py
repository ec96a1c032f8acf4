"""Estimators for scikit-learn: `fit` and `predict` over a problem on a graph, with its certificate.

They need scikit-learn 1.6 or newer, which graphreg itself does not: ``pip install "graphreg[sklearn]"``.
"""

try:
    from sklearn.utils.validation import validate_data as _  # noqa: F401 - new in 1.6
except ImportError as error:
    raise ImportError(
        'graphreg.sklearn needs scikit-learn 1.6 or newer; pip install "graphreg[sklearn]"', name="sklearn"
    ) from error

from .estimators import GraphClassifier, GraphPoissonRegressor, GraphQuantileRegressor, GraphRegressor

__all__ = ["GraphClassifier", "GraphPoissonRegressor", "GraphQuantileRegressor", "GraphRegressor"]
