"""The shared parts of the tests of the command line: how it is run."""

from __future__ import annotations

import os
import subprocess
import sys

from click.testing import CliRunner
from places import ROOT

from graphreg.cli import main


def run(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def process(*arguments, cwd, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-m", "graphreg", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
