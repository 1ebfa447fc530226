"""Noise in tests and doctests: the code of a private run, but words that repeat.

A fit without `random_state` draws its noise from the operating system, so a rare unlucky draw would turn a sound suite
red, and nobody could repeat it. In tests `SecureNoise` therefore hands out a stream that is seeded by the name of the
test, or of the shared fixture that fits. Nothing else differs from a private run: no rehearsal, no other ledger.
Processes that a test starts draw real noise; `tests/privacy/test_noise_sources.py` looks at the real source.

Tests, and the processes that they start, compute with one thread each: they run beside each other.
"""

import hashlib
import os
from collections.abc import Callable
from importlib.util import find_spec
from threading import Lock
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read once, when numpy is imported

import numpy as np
import pytest
from hypothesis import settings

from sfumato.privacy.noise import SecureNoise

# Classes of NVFlare's and functions of vantage6's can only be imported where these are installed.
_carriers = {"nvflare": "nvflare.py", "vantage6": "vantage6"}
collect_ignore = [f"src/sfumato/federated/{place}" for name, place in _carriers.items() if not find_spec(name)]

_FIRST = (
    "tests/federated/test_supernodes",
    "tests/federated/test_flower",
    "tests/docs/test_site",
    "tests/docs/test_pages",
    "tests/settings/test_dask",
    "tests/web/test_runs",
    "tests/cli/test_processes",
)
"""Tests that wait for servers and other processes, for minutes in all, the longest first: workers that are done with
theirs take over from the end."""

_lock = Lock()
_stream = np.random.Philox(0)


def _seed(name: str) -> None:
    global _stream
    _stream = np.random.Philox(int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "little"))


def _words(noise: SecureNoise, count: int) -> Any:
    with _lock:
        return _stream.random_raw(count)


def pytest_configure() -> None:
    SecureNoise.words = _words
    settings.register_profile("repeatable", derandomize=True)
    settings.load_profile("repeatable")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, which nobody should wait for at the end; meanwhile other workers compute."""
    items.sort(key=lambda item: next((i for i, name in enumerate(_FIRST) if item.nodeid.startswith(name)), len(_FIRST)))


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> None:
    """What a fixture draws must not depend on which test is the first to ask for it."""
    _seed(f"{request.node.nodeid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    _seed(item.nodeid)


@pytest.fixture(scope="session")
def seed_noise() -> Callable[[str], None]:
    """For fixtures that fit when they are first asked: call it with the name of what is fitted."""
    return _seed
