"""The canonical form of a problem: blocks of samples and of edges, and how a model becomes one."""

from .building import all_distinct as all_distinct
from .building import build as build
from .building import check_begin as check_begin
from .building import lower as lower
from .form import DualPoint as DualPoint
from .form import EdgeBlock as EdgeBlock
from .form import Form as Form
from .form import SampleBlock as SampleBlock
from .form import held_together as held_together
from .form import without_edges as without_edges
from .held import Held as Held
from .held import fixes as fixes
from .held import flows_without_choice as flows_without_choice
from .latent import halves_squares as halves_squares
from .latent import has_latent_minimisers as has_latent_minimisers
from .latent import with_latent_means as with_latent_means
from .latent import with_latent_minimisers as with_latent_minimisers
from .parts import in_parts as in_parts
from .parts import joined as joined
from .parts import parts_of as parts_of
from .points import parameters_of as parameters_of
