"""Reports: an answer, or a path of answers, as one self-contained page with sliders that opens offline."""

from .page import check_place as check_place
from .page import plain_page as plain_page
from .reports import report_audit as report_audit
from .reports import report_path as report_path
from .reports import report_solution as report_solution
