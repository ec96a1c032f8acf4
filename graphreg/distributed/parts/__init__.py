"""Parts of a graph, each with nodes, samples and edges of its own, and what they tell one another."""

from .config import Parts as Parts
from .config import owners as owners
from .coordinator import AbstractCoordinator as AbstractCoordinator
from .coordinator import CoordinatorState as CoordinatorState
from .coordinator import PartCoordinator as PartCoordinator
from .coordinator import refuse_judges as refuse_judges
from .joint import solve_jointly as solve_jointly
from .keeping import LocalSolution as LocalSolution
from .keeping import SavedParts as SavedParts
from .keeping import writable as writable
from .part import Part as Part
from .part import PartAnswer as PartAnswer
from .part import SharedRows as SharedRows
from .part import answer_of as answer_of
from .part import lines_of as lines_of
from .part import message_of as message_of
from .part import part_of as part_of
from .part import shared_ends as shared_ends
from .part import shared_flows as shared_flows
from .part import take as take
from .part import with_owners as with_owners
from .worker import Posts as Posts
from .worker import Worker as Worker
