"""What a node can compute by itself: proxes, gradients, Newton systems."""

from .by_hand import Oracles as Oracles
from .damped import descended as descended
from .damped import minimisers as minimisers
from .fill import check_size as check_size
from .fill import fits as fits
from .gradients import STEPPING as STEPPING
from .gradients import NodeGradients as NodeGradients
from .gradients import unbounded as unbounded
from .gradients import without_bound as without_bound
from .gradients import without_gradient as without_gradient
from .gradients import without_ground_gradient as without_ground_gradient
from .inexact import INEXACT as INEXACT
from .inexact import Accuracy as Accuracy
from .inexact import Inexact as Inexact
from .inexact import gradient_steps as gradient_steps
from .inexact import without_steps as without_steps
from .newton import NewtonSystem as NewtonSystem
from .newton import Rows as Rows
from .newton import filled_work as filled_work
from .newton import work as work
from .nodeprox import node_proxes as node_proxes
from .nodeprox import without_prox as without_prox
from .quadraticprox import AbstractNodeProx as AbstractNodeProx
from .quadraticprox import Factors as Factors
from .quadraticprox import Memory as Memory
from .quadraticprox import Quadratics as Quadratics
