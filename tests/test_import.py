"""The public face: every name is there, and importing it is quick because nothing heavy comes along."""

import subprocess
import sys

import pytest

import sfumato


def test_every_public_name_can_be_reached_and_is_listed():
    for name in sfumato.__all__:
        assert getattr(sfumato, name).__name__ == name
        assert name in dir(sfumato)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = sfumato.nonsense


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, sfumato; print(sorted({'numpy', 'scipy', 'sklearn', 'pyarrow', 'mpmath'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert out.stdout.strip() == "[]"
