"""Pictures of problems and answers. Importing this does not import matplotlib."""

from ..form.notation import Written as Written
from ..form.notation import dual as dual
from ..form.notation import kkt as kkt
from ..form.notation import primal as primal
from .comparing import comparison_figure as comparison_figure
from .comparing import plot_audit as plot_audit
from .comparing import plot_comparison as plot_comparison
from .flows import plot_flows as plot_flows
from .flows import plot_ledger as plot_ledger
from .graphs import plot_graph as plot_graph
from .graphs import plot_recovery as plot_recovery
from .inference import plot_region as plot_region
from .inference import plot_selection as plot_selection
from .inference import plot_tests as plot_tests
from .layouts import given_places as given_places
from .maps import plot_map as plot_map
from .penalties import penalty_figure as penalty_figure
from .penalties import plot_penalty as plot_penalty
from .shapes import Outlines as Outlines
from .shapes import Rings as Rings
from .shapes import outlines_of as outlines_of
from .shapes import positions_or_outlines as positions_or_outlines
from .traces import plot_bounds as plot_bounds
from .traces import plot_trace as plot_trace
from .tuning import plot_cross_validation as plot_cross_validation
from .tuning import plot_path as plot_path
