"""Where a method runs."""

from ..network import InProcess as InProcess
from .actors.config import Actors as Actors
from .actors.faults import Faults as Faults
