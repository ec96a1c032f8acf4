"""Where a method runs."""

from ..network import InProcess as InProcess
from .actors.config import Actors as Actors
from .actors.faults import Faults as Faults
from .base import AbstractEngine as AbstractEngine
from .mpi.config import MPI as MPI
from .parts.config import Parts as Parts
