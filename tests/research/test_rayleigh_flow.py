"""Rayleigh flow on matrices that are known: it finds what an exact solver finds."""

import numpy as np
import pytest

from sfumato.research.rayleigh_flow import fantope, flow_step, initial_vector

RNG = np.random.default_rng(0)


def test_the_fantope_holds_projections_and_flow_and_start_agree_with_the_exact_solution():
    q = np.linalg.qr(RNG.normal(size=(5, 5)))[0]
    A = (q * [4.0, 1, 0.5, 0.2, 0.1]) @ q.T
    H = fantope(A, 1)
    assert np.trace(H) == pytest.approx(1.0) and np.linalg.eigvalsh(H).min() > -1e-9
    v = initial_vector(A, np.eye(5), 0.1, 1e-3)
    assert abs(v @ q[:, 0]) > 0.99
    for _ in range(100):
        v = flow_step(v, A, np.eye(5), 0.5)
    assert abs(v @ q[:, 0]) == pytest.approx(1.0, abs=1e-9)
    assert (flow_step(np.ones(5), A, np.eye(5), 0.5, sparsity=2) != 0).sum() == 2
    assert np.isfinite(flow_step(q[:, 0], -A, -np.eye(5), 0.5)).all()
