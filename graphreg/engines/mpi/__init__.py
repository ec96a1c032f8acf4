"""Parts of a graph in processes of an MPI job."""

from .config import MPI as MPI
