"""A folder with tables, and a desk that serves it."""

from pathlib import Path

import pytest
from tests.web.served import serving, write_patients

from sfumato import Budget, FileLedger


@pytest.fixture(scope="package")
def patients(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("tables") / "patients.csv"
    write_patients(path)
    return path


@pytest.fixture
def folder(tmp_path, patients) -> Path:
    """An own folder with a table and an open account."""
    (tmp_path / "patients.csv").write_bytes(patients.read_bytes())
    (tmp_path / "sfumato").mkdir()
    FileLedger(tmp_path / "sfumato" / "account.jsonl", Budget.approximate(3, 1e-6))
    return tmp_path


@pytest.fixture(scope="module")
def served(tmp_path_factory, patients):
    """A desk that all tests of a module share, and a client that has entered."""
    folder = tmp_path_factory.mktemp("desk")
    (folder / "patients.csv").write_bytes(patients.read_bytes())
    (folder / "sfumato").mkdir()
    FileLedger(folder / "sfumato" / "account.jsonl", Budget.approximate(3, 1e-6))
    with serving(folder) as (_, client):
        client.folder = folder
        yield client.enter()
