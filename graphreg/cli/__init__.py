"""The command line: ``graphreg solve model.toml`` and its kin; also ``python -m graphreg``."""

# Importing a file declares its commands.
from . import checks as checks
from . import commands as commands
from . import example as example
from . import fitting as fitting
from . import graphs as graphs
from . import strengths as strengths
from .program import main as main
