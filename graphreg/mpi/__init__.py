"""A model whose data lie at several sites, on an MPI job: ``mpiexec -n 4 python -m graphreg.mpi model.toml``.

Every process reads the samples and the edges of its own sites, and no process has those of others: see
docs/parts.md. In Python `solve` does the same for problems that are built by hand.
"""

from ..distributed import LocalSolution as LocalSolution
from ..distributed import SavedParts as SavedParts
from .solving import solve as solve
