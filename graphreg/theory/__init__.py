"""What the papers prove, computed on the user's problem: strengths, recovery, spectra, bounds, mixing."""

from .bounds import ErrorBound as ErrorBound
from .bounds import error_bound as error_bound
from .compatibility import CompatibilityFactor as CompatibilityFactor
from .compatibility import compatibility_factor as compatibility_factor
from .conditioning import Constants as Constants
from .conditioning import constants as constants
from .connectivity import AlgebraicConnectivity as AlgebraicConnectivity
from .connectivity import algebraic_connectivity as algebraic_connectivity
from .fidelity import GraphFidelity as GraphFidelity
from .fidelity import graph_fidelity as graph_fidelity
from .gossip import MixingRate as MixingRate
from .gossip import mixing as mixing
from .guarantee import Recovery as Recovery
from .guarantee import recovery as recovery
from .networks import LargestNetwork as LargestNetwork
from .networks import SparsenessExponent as SparsenessExponent
from .networks import largest_network as largest_network
from .networks import sparseness_exponent as sparseness_exponent
from .rates import Rate as Rate
from .rates import rate as rate
from .strength import StrengthMax as StrengthMax
from .strength import strength_max as strength_max
from .well_connected import WellConnected as WellConnected
from .well_connected import well_connected as well_connected
