"""A model file to run."""

from __future__ import annotations

import pytest
from model_files import BASE, tables, write


@pytest.fixture
def model(tmp_path):
    tables(tmp_path)
    return write(tmp_path, BASE)
