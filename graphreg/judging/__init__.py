"""Answers from elsewhere, judged: a point, whoever found it, and what stands in a CVXPY problem."""

from .given import Given as Given
from .given import beyond_capacity as beyond_capacity
from .given import given_arrays as given_arrays
from .given import given_flows as given_flows
from .given import given_point as given_point
from .given import given_start as given_start
from .judgement import Compiled as Compiled
from .judgement import Judgement as Judgement
from .judgement import judge as judge
