"""Where a method runs."""

from .in_process import InProcess as InProcess
