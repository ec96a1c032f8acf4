"""The command line: ``graphreg solve model.toml`` and its kin; also ``python -m graphreg``."""

# Importing a file declares its commands.
from . import beginnings as beginnings
from . import commands as commands
from . import graphs as graphs
from . import laws as laws
from . import moved as moved
from . import predicting as predicting
from . import proofs as proofs
from . import report as report
from . import strengths as strengths
from .program import main as main
