"""A run of a method, from its first round to a solution: driver, schedule, checkpoints."""

from .budget import Budget as Budget
from .budget import Outcome as Outcome
from .budget import WarmStart as WarmStart
from .checkpoints.checkpoint import Checkpoint as Checkpoint
from .checkpoints.checkpoint import Store as Store
from .checkpoints.fingerprint import entry as entry
from .checkpoints.fingerprint import of_method as of_method
from .checkpoints.fingerprint import of_problem as of_problem
from .checkpoints.fitting import MisfitError as MisfitError
from .checkpoints.fitting import check_entries as check_entries
from .checkpoints.fitting import check_state as check_state
from .checkpoints.packing import Packed as Packed
from .iterating import around as around
from .iterating import view_of as view_of
from .schedule import Schedule as Schedule
from .solution import STATUSES as STATUSES
from .solution import Solution as Solution
from .solving import Task as Task
from .solving import solve as solve
from .solving import solved as solved
from .statuses import contradicted as contradicted
from .trace import Record as Record
from .trace import Trace as Trace
