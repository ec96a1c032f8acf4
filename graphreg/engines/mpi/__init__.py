"""Parts of a graph in processes of an MPI job."""

from .config import MPI as MPI
from .job import abort as abort
from .job import world as world
from .wire import MPIWire as MPIWire
