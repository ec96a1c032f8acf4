"""The command line: ``graphreg solve model.toml`` and its kin; also ``python -m graphreg``."""

from .commands import main as main
