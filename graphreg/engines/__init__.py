"""Where a method runs."""

from ..network import InProcess as InProcess
from .actors.config import Actors as Actors
from .actors.faults import Faults as Faults
from .base import AbstractEngine as AbstractEngine
from .mpi import MPI as MPI
from .mpi import MPIWire as MPIWire
from .mpi import abort as abort
from .mpi import world as world
from .parts import LocalSolution as LocalSolution
from .parts import Parts as Parts
from .parts import SavedParts as SavedParts
from .parts import solve_jointly as solve_jointly
