"""Parts of a graph in processes of an MPI job."""

from .config import MPI as MPI
from .wire import MPIWire as MPIWire
from .world import abort as abort
from .world import world as world
