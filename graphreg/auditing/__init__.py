"""An algorithm, audited: where it leads, by what it goes, and what it does instead."""

from .audit import CLAIMS as CLAIMS
from .audit import audit as audit
from .node import Node as Node
from .report import Audit as Audit
from .report import Finding as Finding
