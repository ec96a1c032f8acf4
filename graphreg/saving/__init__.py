"""Runs, paths and answers in files: a run goes on bit for bit as though it had never been broken off."""

from . import archive as archive
from .fingerprint import entry as entry
from .fingerprint import of_losses as of_losses
from .fingerprint import of_method as of_method
from .fingerprint import of_problem as of_problem
from .packing import JsonTree as JsonTree
from .packing import MisfitError as MisfitError
from .packing import check_entries as check_entries
from .packing import check_state as check_state
from .solutions import OF_ANSWER as OF_ANSWER
from .solutions import check_parts as check_parts
from .solutions import load as load
from .solutions import parts_of as parts_of
from .solutions import proved as proved
from .store import Store as Store
from .store import write_values as write_values
