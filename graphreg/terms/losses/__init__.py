"""The losses, one file per concept; whatever lies here is declared."""

from .base import AbstractPeakedLoss as AbstractPeakedLoss
from .base import AbstractPiecewiseLinearLoss as AbstractPiecewiseLinearLoss
from .base import AbstractQuadraticLoss as AbstractQuadraticLoss
from .base import AbstractSmoothLoss as AbstractSmoothLoss
from .hinge import HingeLoss as HingeLoss
from .hinge import SquaredHingeLoss as SquaredHingeLoss
from .huber import HuberLoss as HuberLoss
from .logistic import LogisticLoss as LogisticLoss
from .loss import AbstractLoss as AbstractLoss
from .loss import dots as dots
from .multinomial import MultinomialLoss as MultinomialLoss
from .poisson import PoissonLoss as PoissonLoss
from .prices import PriceDomain as PriceDomain
from .quantile import QuantileLoss as QuantileLoss
from .samples import AbstractCounts as AbstractCounts
from .samples import AbstractTwoClasses as AbstractTwoClasses
from .samples import at_nodes as at_nodes
from .samples import at_rows as at_rows
from .samples import factors_of as factors_of
from .samples import on_data as on_data
from .squared import MeanLoss as MeanLoss
from .squared import SquaredLoss as SquaredLoss
