"""graphreg needs no scikit-learn; who asks for its estimators is told what to install."""

from __future__ import annotations

import subprocess
import sys

from places import ROOT

CODE = """
import sys
sys.modules["sklearn"] = None  # as where it is not installed
import graphreg as gr
gr.Graph.chain(3)
try:
    gr.sklearn
except ImportError as error:
    print(error.name, error)
"""


def test_the_error_names_the_extra():
    run = subprocess.run([sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == 'sklearn graphreg.sklearn needs scikit-learn 1.6 or newer; pip install "graphreg[sklearn]"\n'
