"""Every method of the family over sites: without noise as on the pooled records, and over the wire as in simulation."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato import (
    Bounds,
    InputError,
    PrivateCCA,
    PrivateDR,
    PrivateLDA,
    PrivateMultiSIR,
    PrivatePCA,
    PrivatePHD,
    PrivateSAVE,
    PrivateSIR,
    PrivateSparsePCA,
)
from sfumato.federated import simulate
from sfumato.federated.coordinator import fit_remote
from sfumato.federated.simulation import fit_sites
from sfumato.federated.task import federated_task, odd_sites
from sfumato.methods import FAMILY, load
from sfumato.privacy.asking import drive
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.records import Response
from sfumato.research import RayleighFlowPCA
from sfumato.settings.central import Central
from sfumato.settings.federated import describe_site, trust_of
from sfumato.sources import ArraySource

N, P = 3_000, 5
BOX = Bounds(-6, 6)
CUTS = (50, 51, 1_900)


def table(kind, n=N):
    """Features with a direction to find, and what the estimator explains or compares them with."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(n, P)) * [2.0, 1.5, 1.0, 1.0, 1.0]
    index = x @ [1.0, -1.0, 0.0, 0.5, 0.0]
    match kind.__name__:
        case "PrivateCCA":
            return x, np.column_stack([index + rng.normal(size=n), rng.normal(size=(n, 2))])
        case "PrivateLDA":
            return x, np.digitize(index + rng.normal(size=n), [-1.0, 1.0])
        case "PrivatePCA" | "PrivateSparsePCA":
            return x, None
    return x, index**2 + 0.5 * rng.normal(size=n)


ESTIMATORS = [
    PrivateSAVE(n_directions=1, bounds=BOX),
    PrivateDR(n_directions=1, bounds=BOX),
    PrivatePHD(n_directions=1, bounds=BOX),
    PrivatePCA(n_directions=2, bounds=BOX),
    PrivatePCA(n_directions=2, bounds=BOX, method="one-shot"),
    PrivateSparsePCA(n_directions=2, bounds=BOX, max_features=2),
    PrivateLDA(n_directions=1, bounds=BOX, classes=[0, 1, 2]),
    PrivateCCA(n_directions=1, bounds=BOX, y_bounds=BOX),
]


def pieces(estimator, cuts=CUTS):
    x, y = table(type(estimator))
    ys = [None] * (len(cuts) + 1) if y is None else np.split(y, cuts)
    return dict(zip(["a", "b", "c", "d"], zip(np.split(x, cuts), ys, strict=True), strict=False))


def same_up_to_sign(one, other, tolerance):
    signs = np.sign(np.sum(one * other, axis=1, keepdims=True))
    np.testing.assert_allclose(signs * one, other, rtol=0, atol=tolerance)


def test_the_whole_family_is_here():
    elsewhere = {"PrivateSIR", "PrivateSparseSIR"}  # test_simulation.py, test_unlike_over_the_wire.py
    here = {type(estimator).__name__ for estimator in ESTIMATORS}
    assert here | elsewhere == {make.__name__ for make in map(load, FAMILY.values()) if make.about.federated}


def test_what_is_not_for_sites_is_refused_before_anything_is_spent():
    x = np.zeros((10, 2))
    with pytest.raises(InputError, match="estimator must be one of PrivateSIR"):
        simulate(PrivateMultiSIR(bounds=BOX), [(x, x), (x, x)])


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_without_noise_sites_equal_the_pooled_fit(estimator, silence):
    estimator = type(estimator)(**estimator.get_params() | {"rho": 1e9})
    sources = {name: estimator._read(*piece) for name, piece in pieces(estimator).items()}
    facts = {name: describe_site(source, "replace") for name, source in sources.items()}
    task = federated_task(estimator, facts, "replace")
    # Units inside the bounds are read off counts and their known noise, which more sites have more of: leave them out.
    size = next(iter(sources.values())).n_features
    task = replace(task, bounds=Bounds(np.full(size, -6.0), np.full(size, 6.0)))
    apart = fit_sites(estimator, task, sources, dict.fromkeys(sources, silence), trust_of("sites", len(sources)))

    x, y = table(type(estimator))
    together = type(estimator)(**estimator.get_params())
    budget, pooled = Budget.zcdp(1e9), together._read(x, y)
    ledger = Ledger(budget, "replace", rehearsal=True)
    together._keep(drive(task.run(), Curator(Central(pooled), task.plan().calibrate(budget), ledger, silence)), ledger)
    same_up_to_sign(apart.directions_, together.directions_, 1e-8)
    np.testing.assert_allclose(apart.mean_, together.mean_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(apart.eigenvalues_, together.eigenvalues_, rtol=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_over_the_wire_and_in_simulation_the_same_seed_gives_the_same_fit(estimator, relation, tmp_path, consortium):
    estimator = type(estimator)(**estimator.get_params() | {"relation": relation, "delta": 1e-5})
    parts = pieces(estimator, (900, 2_000))
    made = type(consortium)(tmp_path / "sites", parts, relation=relation)
    made.sources = {name: type(estimator)(**estimator.get_params())._read(*part) for name, part in parts.items()}
    remote = fit_remote(estimator, made, tuple(parts))
    here = simulate(type(estimator)(**estimator.get_params() | {"random_state": made.seed}), parts)
    np.testing.assert_array_equal(remote.directions_, here.directions_)
    assert remote.n_features_in_ == P and not remote.left_out_
    assert getattr(remote, "n_targets_in_", None) == getattr(here, "n_targets_in_", None)
    assert all(0.99 < told["epsilon"] <= 1.0 for told in remote.spending_.values())
    assert all(0.99 < ledger.spent() <= 1.0 for ledger in here.ledgers_.values())


def test_each_site_names_features_that_vary_and_the_best_named_count():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6_000, 300))
    x[:, [7, 70, 170]] += 3 * rng.normal(size=(6_000, 1))
    estimator = PrivateSparsePCA(epsilon=2.0, n_directions=1, max_features=3, bounds=Bounds(-20, 20))
    found = simulate(estimator, [x[:500], x[500:2_500], x[2_500:]])
    assert found.support_.tolist() == [7, 70, 170]
    with pytest.raises(InputError, match="trust must be 'sites'"):
        simulate(estimator, np.split(x, 3), "secure-aggregation")


def facts_of(estimator, *tables):
    sources = {name: ArraySource(x, np.zeros(len(x)), Response(), **more) for name, (x, more) in tables}
    return {name: describe_site(source, "replace") for name, source in sources.items()}


WIDE, NARROW = np.zeros((3, 4)), np.zeros((3, 2))


@pytest.mark.parametrize(
    ("estimator", "more", "sentence"),
    [
        (PrivateSIR(), {"has_response": False}, "PrivateSIR needs a response at each"),
        (PrivateCCA(), {}, "PrivateCCA needs a second table at each"),
        (PrivatePCA(), {"n_second": 2}, "PrivatePCA takes no second table"),
        (PrivateSIR(classes=["a", "b"]), {}, "classes must be the same at each site"),
        (PrivateLDA(), {}, "classes must be listed"),
    ],
)
def test_sites_that_lack_what_an_estimator_needs_are_refused_in_one_sentence(estimator, more, sentence):
    facts = facts_of(estimator, ("a", (WIDE, more)), ("b", (WIDE, more)))
    with pytest.raises(InputError, match=sentence):
        federated_task(estimator, facts, "replace")


def test_the_table_that_is_unlike_most_others_is_named_and_of_two_neither():
    estimator = PrivateSIR()
    three = facts_of(estimator, ("a", (WIDE, {})), ("b", (NARROW, {})), ("c", (WIDE, {})))
    assert odd_sites(estimator, three) == {"b": "differs from the other sites in the number of features."}
    del three["c"]
    assert odd_sites(estimator, three) == {} and odd_sites(estimator, {}) == {}
    with pytest.raises(InputError, match="'a' and 'b' differ in the number of features"):
        federated_task(estimator, three, "replace")


def test_classes_in_another_order_are_noticed():
    """Codes are positions: sites that count them differently would add up different classes."""
    listed = facts_of(PrivateLDA(), *((name, (WIDE, {})) for name in "abc"))
    orders = {"a": ("no", "yes"), "b": ("no", "yes"), "c": ("yes", "no")}
    facts = {name: replace(fact, classes=orders[name], response=Response(3)) for name, fact in listed.items()}
    assert odd_sites(PrivateLDA(), facts) == {"c": "differs from the other sites in the classes, or their order."}
    del facts["c"]
    assert federated_task(PrivateLDA(classes=["no", "yes"], bounds=BOX), facts, "replace").n_records == 6
    with pytest.raises(InputError, match="in the same order"):
        federated_task(PrivateLDA(classes=["yes", "no"], bounds=BOX), facts, "replace")


def test_components_do_not_look_at_a_response_so_it_may_differ():
    facts = facts_of(PrivatePCA(), ("a", (WIDE, {"has_response": False})), ("b", (WIDE, {})))
    assert federated_task(PrivatePCA(bounds=BOX), facts, "replace").n_records == 6


def test_the_papers_own_methods_are_not_fitted_over_sites():
    with pytest.raises(InputError, match=r"estimator must be one of PrivateSIR, .* got a RayleighFlowPCA"):
        simulate(RayleighFlowPCA(bounds=BOX), [WIDE, WIDE])
