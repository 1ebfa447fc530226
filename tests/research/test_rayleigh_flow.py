"""Rayleigh flow on matrices that are known: it finds what an exact solver finds."""

import numpy as np
import pytest
import scipy.linalg

from sfumato import subspace_distance
from sfumato.research.rayleigh_flow import fantope, flow_step, initial_vector, initial_vectors

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


def problem(p, condition, seed):
    """A and B with generalised eigenvalues 0.6, 0.5, 0.2 and less, B as ill-conditioned as told."""
    rng = np.random.default_rng(seed)
    q, r = (np.linalg.qr(rng.normal(size=(p, p)))[0] for _ in range(2))
    B = (q * np.geomspace(1, 1 / condition, p)) @ q.T
    root = (q * np.geomspace(1, 1 / condition, p) ** 0.5) @ q.T
    A = root @ (r * np.r_[0.6, 0.5, np.linspace(0.2, 0, p - 2)]) @ r.T @ root
    return A, B, scipy.linalg.eigh(A, B)[1][:, ::-1]


@pytest.mark.parametrize("condition", [1, 100, 1000, 10_000])
def test_the_start_converges_however_ill_conditioned_the_covariance_is(condition):
    """With 200 rounds of linearised steps the cosine was 0.984 at 100 and 0.869 at 1000."""
    for seed in range(3):
        A, B, exact = problem(8, condition, seed)
        v = initial_vector(A, B, 1e-9, 1e-9)
        assert abs(v @ exact[:, 0]) / np.linalg.norm(exact[:, 0]) > 1 - 1e-5


def test_a_start_of_several_vectors_spans_what_the_leading_ones_span():
    A, B, exact = problem(6, 50, 3)
    assert subspace_distance(initial_vectors(A, B, 1e-9, 1e-9, 2).T, exact[:, :2].T) < 1e-3


def test_the_penalty_makes_the_start_sparse():
    A = np.diag([1.0, 0.9, 0.01, 0.01]) + 0.02
    assert (np.abs(initial_vector(A, np.eye(4), 0.1, 0.2)) > 1e-4).sum() < 4
