"""Isolated actors: every node owns its data and sees only what its neighbours sent it."""

from .actor import NodePart as NodePart
from .actor import split as split
from .config import Actors as Actors
from .faults import Faults as Faults
