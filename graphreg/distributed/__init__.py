"""The engines: places where a method runs."""

from ..network import InProcess as InProcess
from ..running import AbstractEngine as AbstractEngine
from .actors.config import Actors as Actors
from .actors.faults import Faults as Faults
from .malicious import Malicious as Malicious
from .mpi import INTERRUPTED as INTERRUPTED
from .mpi import MPI as MPI
from .mpi import Facts as Facts
from .mpi import MPIWire as MPIWire
from .mpi import abort as abort
from .mpi import agreed as agreed
from .mpi import call as call
from .mpi import job_size as job_size
from .mpi import launched_rank as launched_rank
from .mpi import shared as shared
from .mpi import versions as versions
from .mpi import world as world
from .parts import LocalSolution as LocalSolution
from .parts import Parts as Parts
from .parts import SavedParts as SavedParts
from .parts import solve_jointly as solve_jointly
from .parts import writable as writable
