"""Fed-ADMM: stochastic gradients at the nodes, exact proxes on the edges."""

from .fed_admm import FedADMM as FedADMM
