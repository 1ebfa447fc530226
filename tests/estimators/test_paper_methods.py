"""The methods of the papers: tight within one budget, printed noise flagged."""

import numpy as np
import pytest

from sfumato import (
    Bounds,
    InputError,
    PrivacyWarning,
    PrivateCCA,
    PrivateLDA,
    PrivatePCA,
    PrivateSIR,
    PrivateSparseSIR,
    subspace_distance,
)
from sfumato.estimators.paper_methods import HIGH, LOW
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import NoGuarantee
from sfumato.simulate import xia

BOX = Bounds(-1.5, 1.5)


PAPER = [(PrivateSIR, method) for method in LOW] + [(PrivateSparseSIR, method) for method in HIGH]


@pytest.fixture(scope="module")
def large():
    return xia("M1", n=20_000, p=20, high_dimensional=True, random_state=3)


@pytest.mark.parametrize(("kind", "method"), PAPER)
def test_tight_paper_methods_cost_the_budget_and_find_the_direction(kind, method, large):
    distances = []
    for _ in range(3):
        fit = kind(1.0, 1e-5, 1, BOX, method).fit(large.x, large.y)
        distances.append(subspace_distance(fit.directions_, large.directions))
        assert 1 - 1e-6 <= fit.ledger_.total() <= 1.0 + 1e-12
    assert np.median(distances) < 0.7


@pytest.mark.parametrize(("kind", "method"), PAPER)
def test_tight_paper_methods_are_near_exact_with_a_huge_budget(kind, method, large):
    fit = kind(1e4, 1e-5, 1, BOX, method).fit(large.x, large.y)
    assert subspace_distance(fit.directions_, large.directions) < 0.05


@pytest.mark.parametrize(("kind", "method"), PAPER)
def test_printed_noise_is_flagged_in_ledger_and_warning(kind, method, large):
    with pytest.warns(PrivacyWarning, match="calibration='paper'"):
        fit = kind(1.0, 1e-5, 1, BOX, method, calibration="paper").fit(large.x[:3000], large.y[:3000])
    assert fit.ledger_.total() == np.inf
    assert all(isinstance(event, NoGuarantee) for event in fit.ledger_.events)
    assert fit.ledger_.guarantee.startswith("No privacy guarantee")
    assert fit.directions_.shape == (1, 20)


def test_printed_noise_takes_no_shared_ledger(large, tmp_path):
    from sfumato import Ledger

    ledger = Ledger(Budget.approximate(2.0, 1e-5), "replace")
    with pytest.raises(InputError, match="no guarantee"):
        PrivateSIR(1.0, 1e-5, 1, BOX, "dp-ini", calibration="paper", ledger=ledger).fit(large.x, large.y)
    assert len(ledger) == 0


def test_the_dimension_is_found_by_bic():
    sample = xia("M3", n=30_000, p=8, random_state=0)
    assert PrivateSIR(5.0, 1e-5, "auto", BOX, "dp-ini").fit(sample.x, sample.y).directions_.shape == (2, 8)


@pytest.mark.parametrize("method", ["dp-sini", "dp-ssir"])
def test_validation_keeps_few_features_with_a_large_budget(method, large):
    fit = PrivateSparseSIR(100.0, 1e-5, 1, BOX, method, max_features="validate").fit(large.x, large.y)
    assert {0, 1} <= set(fit.support_.tolist()) and len(fit.support_) <= 8
    assert any(entry.purpose == "number of features" for entry in fit.ledger_)
    assert subspace_distance(fit.directions_, large.directions) < 0.1


def test_validation_has_no_printed_noise(large):
    with pytest.raises(InputError, match="validate"):
        PrivateSparseSIR(1.0, 1e-5, 1, BOX, "dp-sini", max_features="validate", calibration="paper").fit(
            large.x[:500], large.y[:500]
        )


def test_paper_methods_need_bounds():
    with pytest.raises(InputError, match="bounds must be given"):
        PrivateSIR(method="dp-ini").explain(1000, 5)


def test_steps_on_disjoint_parts_cost_one_release_and_full_batches_one_each(large):
    purposes = {
        method: [entry.purpose for entry in PrivateSIR(1.0, 1e-5, 1, BOX, method).fit(large.x, large.y).ledger_]
        for method in ("dp-sir", "dp-sir-full")
    }
    assert [name for name in purposes["dp-sir"] if "gradient" in name] == [
        "gradient steps, each on its own part of the records"
    ]
    assert sum("gradient" in name for name in purposes["dp-sir-full"]) == 3


def test_a_step_on_a_part_has_sqrt_3_times_the_noise_of_a_full_step_per_record_used(large):
    """A third of the records at the whole cost, against all of them at a third of the cost."""
    fits = {m: PrivateSIR(1.0, 1e-5, 1, BOX, m).fit(large.x, large.y) for m in ("dp-sir", "dp-sir-full")}
    std = {m: next(e.noise_std for e in fit.ledger_ if "gradient" in e.purpose) for m, fit in fits.items()}
    assert (3 * std["dp-sir"]) / std["dp-sir-full"] == pytest.approx(np.sqrt(3.0))


@pytest.mark.parametrize(("kind", "method"), [(PrivateSIR, LOW[-1]), (PrivateSparseSIR, HIGH[-1])])
def test_rayleigh_flow_finds_one_direction_only(kind, method):
    with pytest.raises(InputError, match="n_directions must be 1"):
        kind(n_directions=2, bounds=BOX, method=method).explain(1000, 20)


@pytest.mark.parametrize("rho", [None, 0.05])
def test_printed_flow_takes_a_zcdp_budget_and_the_others_do_not(rho, large):
    flow = {"calibration": "paper", "method": "rayleigh-flow", "bounds": BOX, "rho": rho}
    fit = PrivateSIR(n_directions=1, **flow).fit(large.x[:2000], large.y[:2000])
    component = PrivatePCA(1, **flow).fit(large.x[:2000])
    assert fit.ledger_.total(1e-6) == np.inf == component.ledger_.total(1e-6)
    if rho is not None:
        with pytest.raises(InputError, match="rho for Rayleigh flow only"):
            PrivateSIR(n_directions=1, **flow | {"method": "dp-ini"}).fit(large.x[:2000], large.y[:2000])


def test_a_printed_principal_flow_with_a_huge_budget_is_the_first_component():
    x = np.random.default_rng(0).normal(size=(5000, 5)) * [1, 3, 1, 1, 1]
    fit = PrivatePCA(1, rho=1e6, bounds=Bounds(-15, 15), method="rayleigh-flow", calibration="paper").fit(x)
    assert abs(fit.directions_[0, 1]) > 0.999 and np.isnan(fit.eigenvalues_).all()


@pytest.mark.parametrize("options", [{"method": "refined"}, {"bounds": None}])
def test_printed_noise_of_components_needs_the_flow_and_bounds(options):
    given = {"bounds": BOX, "method": "rayleigh-flow", "calibration": "paper"} | options
    with pytest.raises(InputError, match="needs method='rayleigh-flow' and bounds"):
        PrivatePCA(1, **given).fit(np.zeros((9, 2)))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_flow_of_canonical_pairs_finds_the_planted_pair(relation):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20_000, 4)), rng.normal(size=(20_000, 3))
    y[:, 0] += 2 * x[:, 1]
    given = {"bounds": Bounds(-8, 8), "y_bounds": Bounds(-12, 12), "method": "rayleigh-flow", "relation": relation}
    fit = PrivateCCA(1, **given).fit(x, y)
    assert abs(fit.x_weights_[0, 1]) > 0.98 and abs(fit.y_weights_[0, 0]) > 0.98
    assert fit.correlations_[0] == pytest.approx(2 / np.sqrt(5), abs=0.1)
    assert fit.ledger_.total() == pytest.approx(1.0)
    with pytest.raises(InputError, match="n_directions must be 1"):
        PrivateCCA(2, **given).fit(x, y)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_flow_of_discriminants_tells_two_classes_apart(relation):
    rng = np.random.default_rng(2)
    y = rng.choice(["ash", "oak"], 10_000)
    x = rng.normal(size=(10_000, 4)) + 2.0 * (y == "oak")[:, None] * [1, 0, 0, 0]
    given = {"classes": ["ash", "oak"], "bounds": Bounds(-6, 8), "method": "rayleigh-flow", "relation": relation}
    fit = PrivateLDA(n_directions=1, **given).fit(x, y)
    assert abs(fit.directions_[0, 0]) > 0.98 and (fit.predict(x) == y).mean() > 0.82  # the best rule has 0.841
    with pytest.raises(InputError, match="n_directions must be 1"):
        PrivateLDA(n_directions=2, **given).fit(x, y)


@pytest.mark.parametrize("rho", [None, 1e6])
def test_printed_flows_of_pairs_and_classes_are_flagged_and_near_exact_with_a_huge_budget(rho):
    rng = np.random.default_rng(3)
    given = {"bounds": Bounds(-9, 9), "method": "rayleigh-flow", "calibration": "paper", "rho": rho}
    x, y = rng.normal(size=(5000, 3)), rng.normal(size=(5000, 2))
    y[:, 0] += 2 * x[:, 1]
    classes = rng.choice(["ash", "oak"], 5000)
    z = rng.normal(size=(5000, 3)) + 3.0 * (classes == "oak")[:, None] * [0, 0, 1] - [0, 0, 1.5]
    with pytest.warns(PrivacyWarning, match="calibration='paper'"):
        pair = PrivateCCA(1, y_bounds=Bounds(-9, 9), **given).fit(x, y)
    with pytest.warns(PrivacyWarning, match="calibration='paper'"):
        rule = PrivateLDA(n_directions=1, classes=["ash", "oak"], **given).fit(z, classes)
    assert pair.ledger_.total(1e-6) == np.inf == rule.ledger_.total(1e-6)
    assert pair.transform(x).shape == (5000, 1) == rule.transform(z).shape and not hasattr(rule, "predict")
    if rho is not None:
        assert abs(pair.x_weights_[0, 1]) > 0.99 and abs(rule.directions_[0, 2]) > 0.99


def test_printed_flows_need_the_flow_bounds_and_declared_classes():
    x, y = np.zeros((9, 2)), np.zeros((9, 2))
    with pytest.raises(InputError, match="needs method='rayleigh-flow' and bounds"):
        PrivateCCA(1, bounds=BOX, y_bounds=BOX, calibration="paper").fit(x, y)
    with pytest.raises(InputError, match="needs method='rayleigh-flow' and bounds"):
        PrivateLDA(n_directions=1, method="rayleigh-flow", calibration="paper").fit(x, y[:, 0])
    with pytest.raises(InputError, match="classes must list"):
        PrivateLDA(n_directions=1, method="rayleigh-flow", calibration="paper", bounds=BOX).fit(x, list("aabbaabba"))
