"""Formulas as the papers print them, where the print does not hold; `differences` lists all such places."""

from .bounds import PrintedErrorBound as PrintedErrorBound
from .bounds import compatibility_bound as compatibility_bound
from .bounds import edge_residuals as edge_residuals
from .bounds import error_bound as error_bound
from .bounds import gap as gap
from .bounds import sparseness_exponent as sparseness_exponent
from .clusters import cluster_gradients as cluster_gradients
from .clusters import communication_rounds as communication_rounds
from .clusters import james_stein_weights as james_stein_weights
from .clusters import likelihood as likelihood
from .clusters import network_mean as network_mean
from .places import differences as differences
