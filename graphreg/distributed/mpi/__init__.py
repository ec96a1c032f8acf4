"""Parts of a graph in processes of an MPI job."""

from .config import MPI as MPI
from .config import MPIWire as MPIWire
from .job import INTERRUPTED as INTERRUPTED
from .job import Facts as Facts
from .job import abort as abort
from .job import agreed as agreed
from .job import call as call
from .job import job_size as job_size
from .job import launched_rank as launched_rank
from .job import shared as shared
from .job import versions as versions
from .job import world as world
