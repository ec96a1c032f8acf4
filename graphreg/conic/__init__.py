"""Rigorous bounds of the optimal value of any problem of CVXPY, whoever solved it."""

from .certificate import ConicCertificate as ConicCertificate
from .proving import certify as certify
