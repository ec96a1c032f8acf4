"""Parts of a graph, each with nodes, samples and edges of its own, and what they tell one another."""

from .answers import Answer as Answer
from .answers import answer_of as answer_of
from .answers import gathered_of as gathered_of
from .answers import point_of as point_of
from .config import Parts as Parts
from .coordinator import Coordinator as Coordinator
from .dealing import owners as owners
from .joint import solve_jointly as solve_jointly
from .local_solution import LocalSolution as LocalSolution
from .local_solution import SavedParts as SavedParts
from .part import Part as Part
from .part import part_of as part_of
from .places import writable as writable
from .posts import Posts as Posts
from .worker import Worker as Worker
