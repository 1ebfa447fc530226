"""The public face: every name is there, and importing it is quick because nothing heavy comes along."""

import ast
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


LOADED = """
import sys, sklearn.base
before = set(sys.modules)
from sfumato import PrivateSIR
new = {name for name in set(sys.modules) - before if name.split(".")[0] not in sys.stdlib_module_names}
print(sorted({name.split(".")[0] for name in new} - {"sklearn"}))
print(sorted({name.split(".")[1] for name in new if name.startswith("sfumato.")}))
"""


def test_the_flagship_brings_nothing_along_that_a_fit_in_memory_does_not_need():
    out = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=60)
    libraries, layers = map(ast.literal_eval, out.stdout.splitlines())
    assert set(libraries) <= {"mpmath", "sfumato", "threadpoolctl"}
    assert not {"audit", "cli", "federated", "model", "report", "research", "simulate", "study", "web"} & set(layers)
