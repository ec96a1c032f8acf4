"""Dynamic programming on forests."""

from .dynamic_programming import DynamicProgramming as DynamicProgramming
