"""The papers' principal components: near exact with a large budget, sparse ones on the right features."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Bounds, InputError, subspace_distance
from sfumato.research import DPSIR, DPSPCA, RayleighFlowPCA, TruncatedRayleighFlowPCA

BOX = Bounds(-20, 20)


@parametrize_with_checks([DPSPCA(bounds="search", random_state=0), DPSIR(random_state=0, bounds=Bounds(-9, 9))])
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


def test_rayleigh_flow_finds_the_first_component_and_only_that():
    x = np.random.default_rng(5).normal(size=(20_000, 8)) * np.sqrt([6.0, 2, 1, 1, 1, 1, 1, 1])
    for seed in range(3):
        pca = RayleighFlowPCA(1, bounds=BOX, random_state=seed).fit(x)
        assert subspace_distance(pca.directions_, np.eye(8)[:1]) < np.sqrt(2.0) * np.sin(np.radians(5))
    pca = RayleighFlowPCA(1, bounds=BOX).fit(x[:500])
    assert pca.ledger_.total() == pytest.approx(1.0, abs=1e-6) and len(pca.ledger_) == 12
    with pytest.raises(InputError, match="must be 1"):
        RayleighFlowPCA(2).fit(x)


def spiked(n, p, seed):
    """Noise of variance 1 and one component of variance 6.25 on six features."""
    rng = np.random.default_rng(seed)
    v = np.zeros(p)
    v[rng.choice(p, 6, replace=False)] = 1 / np.sqrt(6)
    return rng.normal(size=(n, p)) + 2.5 * rng.normal(size=(n, 1)) * v, v


SPARSE = (DPSPCA, TruncatedRayleighFlowPCA)


@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_components_are_near_exact_with_a_huge_budget(kind):
    x, v = spiked(5000, 60, 2)
    fit = kind(1, 1e5, bounds=Bounds(-15, 15), max_features=6).fit(x)
    assert fit.support_.tolist() == np.flatnonzero(v).tolist()
    assert subspace_distance(fit.directions_, v) < 0.06  # sampling: 0.02


@pytest.mark.parametrize("kind", [*SPARSE, RayleighFlowPCA])
def test_the_plan_tells_everything_beforehand(kind):
    estimator = kind(1, bounds=BOX)
    planned = [line.purpose for line in estimator.explain(2000, 50).plan.lines]
    assert planned == [entry.purpose for entry in estimator.fit(spiked(2000, 50, 5)[0]).ledger_]


@pytest.mark.parametrize(
    "options", [{"n_directions": "auto"}, {"max_features": 0}, {"n_directions": 9}, {"bounds": (0, 1)}]
)
@pytest.mark.parametrize("kind", SPARSE)
def test_bad_parameters_are_refused_in_a_sentence_that_names_them(kind, options):
    with pytest.raises(InputError, match=r"n_directions|max_features|bounds"):
        kind(**options).fit(np.zeros((20, 12)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bounds", ["search", Bounds(-1, 1)])
@pytest.mark.parametrize("kind", [*SPARSE, RayleighFlowPCA])
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_nothing_inside_the_domain_raises_or_warns(kind, bounds, relation):
    edges = (np.zeros((30, 12)), np.full((30, 12), 1e300), np.eye(12), np.ones((1, 12)), np.full((20, 12), 5e-324))
    for x in edges:
        fit = kind(1, bounds=bounds, relation=relation).fit(x)
        assert np.isfinite(fit.directions_).all() and np.isfinite(fit.mean_).all()
        assert np.linalg.norm(fit.directions_[0]) == pytest.approx(1.0)
