"""Where a method runs."""

from .actors import Actors as Actors
from .actors import Faults as Faults
from .in_process import InProcess as InProcess
