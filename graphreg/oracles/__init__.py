"""The computations of a node by itself: proxes, gradients, Newton systems."""

from .by_hand import Oracles as Oracles
from .damped import minimiser as minimiser
from .damped import minimisers as minimisers
from .gradients import INEXACT as INEXACT
from .gradients import STEPPING as STEPPING
from .gradients import Accuracy as Accuracy
from .gradients import Inexact as Inexact
from .gradients import NodeGradients as NodeGradients
from .gradients import gradient_steps as gradient_steps
from .gradients import unbounded as unbounded
from .gradients import without_bound as without_bound
from .gradients import without_gradient as without_gradient
from .gradients import without_ground_gradient as without_ground_gradient
from .gradients import without_steps as without_steps
from .newton import NewtonSystem as NewtonSystem
from .newton import SystemRows as SystemRows
from .newton import check_size as check_size
from .newton import filled_work as filled_work
from .newton import fits as fits
from .newton import work as work
from .nodeprox import AbstractNodeProx as AbstractNodeProx
from .nodeprox import GramProx as GramProx
from .nodeprox import Memory as Memory
from .nodeprox import QuadraticProx as QuadraticProx
from .nodeprox import node_proxes as node_proxes
from .nodeprox import without_prox as without_prox
