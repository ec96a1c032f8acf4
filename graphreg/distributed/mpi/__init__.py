"""Parts of a graph in processes of an MPI job."""

from .alike import Facts as Facts
from .alike import agreed as agreed
from .alike import call as call
from .alike import versions as versions
from .config import MPI as MPI
from .config import MPIWire as MPIWire
from .job import INTERRUPTED as INTERRUPTED
from .job import abort as abort
from .job import job_size as job_size
from .job import launched_rank as launched_rank
from .job import world as world
