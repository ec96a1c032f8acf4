"""An algorithm, audited: where it leads, by what it goes, and what it does instead."""

from .algorithms import AbstractAlgorithm as AbstractAlgorithm
from .algorithms import Node as Node
from .algorithms import algorithm_of as algorithm_of
from .course import Course as Course
from .course import CourseRunner as CourseRunner
from .referee import CLAIMS as CLAIMS
from .referee import audit as audit
from .report import Audit as Audit
from .report import Finding as Finding
