"""Baselines for methods: subgradients, and problems of which graphs are no part."""

from ._baseline import AbstractBaseline as AbstractBaseline
from .pfedme import PFedMe as PFedMe
