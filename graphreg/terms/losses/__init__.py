"""The losses, one file per concept; whatever lies here is declared."""

from ._piecewise import AbstractPiecewiseLinearLoss as AbstractPiecewiseLinearLoss
from .base import AbstractPeakedLoss as AbstractPeakedLoss
from .base import AbstractQuadraticLoss as AbstractQuadraticLoss
from .base import AbstractSmoothLoss as AbstractSmoothLoss
from .hinge import HingeLoss as HingeLoss
from .hinge import SquaredHingeLoss as SquaredHingeLoss
from .huber import HuberLoss as HuberLoss
from .logistic import LogisticLoss as LogisticLoss
from .loss import AbstractLoss as AbstractLoss
from .multinomial import MultinomialLoss as MultinomialLoss
from .poisson import PoissonLoss as PoissonLoss
from .quantile import QuantileLoss as QuantileLoss
from .squared import MeanLoss as MeanLoss
from .squared import SquaredLoss as SquaredLoss
