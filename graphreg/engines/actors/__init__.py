"""Isolated actors: every node owns its data and sees only what its neighbours sent it."""

from .config import Actors as Actors
from .faults import Faults as Faults
from .parts import NodePart as NodePart
from .parts import split as split
