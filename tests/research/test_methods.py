"""The methods of the papers: tight within one budget, printed noise flagged."""

import re

import numpy as np
import pytest
import scipy.linalg

from sfumato import (
    SIR,
    Bounds,
    InputError,
    PrivacyWarning,
    PrivateCCA,
    PrivateLDA,
    PrivatePCA,
    PrivateSIR,
    PrivateSparsePCA,
    PrivateSparseSIR,
    subspace_distance,
)
from sfumato.methods.inputs import MOVED
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import NoGuarantee
from sfumato.records import Records
from sfumato.research import (
    DPSIR,
    DPSSIR,
    DPIni,
    DPSIni,
    RayleighFlowCCA,
    RayleighFlowLDA,
    RayleighFlowPCA,
    RayleighFlowSIR,
    TruncatedRayleighFlowSIR,
    printed_noise,
)
from sfumato.research.pencil import arctan_edges, cut
from sfumato.simulate import xia
from sfumato.statistics.parts import part_of

BOX = Bounds(-1.5, 1.5)
PAPER = {
    "DP-Ini": (DPIni, {}),
    "DP-SIR": (DPSIR, {}),
    "DP-SIR, full batches": (DPSIR, {"batches": "full"}),
    "Rayleigh flow": (RayleighFlowSIR, {}),
    "DP-SIni": (DPSIni, {}),
    "DP-SSIR": (DPSSIR, {}),
    "truncated Rayleigh flow": (TruncatedRayleighFlowSIR, {}),
}


@pytest.fixture(scope="module")
def large():
    return xia("M1", n=20_000, p=20, high_dimensional=True, random_state=3)


@pytest.mark.parametrize("name", PAPER)
def test_tight_paper_methods_find_the_direction(name, large):
    distances, (kind, options) = [], PAPER[name]
    for seed in range(3):
        fit = kind(1.0, 1e-5, 1, BOX, random_state=seed, **options).fit(large.x, large.y)
        distances.append(subspace_distance(fit.directions_, large.directions))
    assert np.median(distances) < 0.7


@pytest.mark.parametrize("name", PAPER)
def test_tight_paper_methods_cost_the_budget(name, large):
    kind, options = PAPER[name]
    fit = kind(1.0, 1e-5, 1, BOX, **options).fit(large.x[:3000], large.y[:3000])
    assert 1 - 1e-6 <= fit.ledger_.total() <= 1.0 + 1e-12


@pytest.mark.parametrize("name", PAPER)
def test_tight_paper_methods_are_near_exact_with_a_huge_budget(name, large):
    kind, options = PAPER[name]
    fit = kind(1e4, 1e-5, 1, BOX, **options).fit(large.x, large.y)
    assert subspace_distance(fit.directions_, large.directions) < 0.05


@pytest.mark.parametrize("name", PAPER)
def test_printed_noise_is_flagged_in_ledger_and_warning(name, large):
    kind, options = PAPER[name]
    with pytest.warns(PrivacyWarning, match="calibration='paper'"):
        fit = kind(1.0, 1e-5, 1, BOX, calibration="paper", **options).fit(large.x[:3000], large.y[:3000])
    assert fit.ledger_.total() == np.inf
    assert all(isinstance(event, NoGuarantee) for event in fit.ledger_.events)
    assert fit.ledger_.guarantee.startswith("No privacy guarantee")
    assert fit.directions_.shape == (1, 20)


def test_printed_noise_takes_no_shared_ledger(large, tmp_path):
    from sfumato import Ledger

    ledger = Ledger(Budget.approximate(2.0, 1e-5), "replace")
    with pytest.raises(InputError, match="no guarantee"):
        DPIni(1.0, 1e-5, 1, BOX, calibration="paper", ledger=ledger).fit(large.x, large.y)
    assert len(ledger) == 0


def test_the_dimension_is_found_by_bic():
    sample = xia("M3", n=30_000, p=8, random_state=0)
    assert DPIni(5.0, 1e-5, "auto", BOX).fit(sample.x, sample.y).directions_.shape == (2, 8)


@pytest.mark.parametrize("kind", [DPSIni, DPSSIR])
def test_validation_keeps_few_features_with_a_large_budget(kind, large):
    fit = kind(100.0, 1e-5, 1, BOX, max_features="validate").fit(large.x, large.y)
    assert {0, 1} <= set(fit.support_.tolist()) and len(fit.support_) <= 8
    assert any("number of features" in entry.purpose for entry in fit.ledger_)
    assert subspace_distance(fit.directions_, large.directions) < 0.1


def test_validation_has_no_printed_noise(large):
    with pytest.raises(InputError, match="validate"):
        DPSIni(1.0, 1e-5, 1, BOX, max_features="validate", calibration="paper").fit(large.x[:500], large.y[:500])


def test_paper_methods_need_bounds():
    with pytest.raises(InputError, match="bounds must be given"):
        DPIni().explain(1000, 5)


def test_steps_on_disjoint_parts_cost_one_release_and_full_batches_one_each(large):
    purposes = {
        batches: [entry.purpose for entry in DPSIR(1.0, 1e-5, 1, BOX, batches=batches).fit(large.x, large.y).ledger_]
        for batches in ("parts", "full")
    }
    assert [name for name in purposes["parts"] if "gradient" in name] == [
        "gradient steps, each on its own part of the records"
    ]
    assert sum("gradient" in name for name in purposes["full"]) == 3


def test_a_step_on_a_part_has_sqrt_3_times_the_noise_of_a_full_step_per_record_used(large):
    """A third of the records at the whole cost, against all of them at a third of the cost."""
    fits = {b: DPSIR(1.0, 1e-5, 1, BOX, batches=b).fit(large.x, large.y) for b in ("parts", "full")}
    std = {m: next(e.noise_std for e in fit.ledger_ if "gradient" in e.purpose) for m, fit in fits.items()}
    assert (3 * std["parts"]) / std["full"] == pytest.approx(np.sqrt(3.0))


@pytest.mark.parametrize("kind", [RayleighFlowSIR, TruncatedRayleighFlowSIR, RayleighFlowPCA, RayleighFlowLDA])
def test_rayleigh_flow_finds_one_direction_only(kind):
    with pytest.raises(InputError, match="n_directions must be 1"):
        kind(n_directions=2, bounds=BOX).explain(1000, 20)


@pytest.mark.parametrize("rho", [None, 0.05])
def test_printed_flow_takes_a_zcdp_budget_and_the_others_do_not(rho, large):
    flow = {"calibration": "paper", "bounds": BOX, "rho": rho}
    fit = RayleighFlowSIR(n_directions=1, **flow).fit(large.x[:2000], large.y[:2000])
    component = RayleighFlowPCA(1, **flow).fit(large.x[:2000])
    assert fit.ledger_.total(1e-6) == np.inf == component.ledger_.total(1e-6)
    if rho is not None:
        with pytest.raises(InputError, match="rho for Rayleigh flow only"):
            DPIni(n_directions=1, **flow).fit(large.x[:2000], large.y[:2000])


def test_a_printed_principal_flow_with_a_huge_budget_is_the_first_component():
    x = np.random.default_rng(0).normal(size=(5000, 5)) * [1, 3, 1, 1, 1]
    fit = RayleighFlowPCA(1, rho=1e6, bounds=Bounds(-15, 15), calibration="paper").fit(x)
    assert abs(fit.directions_[0, 1]) > 0.999 and np.isnan(fit.eigenvalues_).all()


def test_printed_noise_of_components_needs_bounds():
    with pytest.raises(InputError, match="bounds must be given"):
        RayleighFlowPCA(1, calibration="paper").fit(np.zeros((9, 2)))


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_flow_of_canonical_pairs_finds_the_planted_pair(relation):
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20_000, 4)), rng.normal(size=(20_000, 3))
    y[:, 0] += 2 * x[:, 1]
    given = {"bounds": Bounds(-8, 8), "y_bounds": Bounds(-12, 12), "relation": relation}
    fit = RayleighFlowCCA(1, **given).fit(x, y)
    assert abs(fit.x_weights_[0, 1]) > 0.98 and abs(fit.y_weights_[0, 0]) > 0.98
    assert fit.correlations_[0] == pytest.approx(2 / np.sqrt(5), abs=0.1)
    assert fit.ledger_.total() == pytest.approx(1.0)
    with pytest.raises(InputError, match="n_directions must be 1"):
        RayleighFlowCCA(2, **given).fit(x, y)


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_flow_of_discriminants_tells_two_classes_apart(relation):
    rng = np.random.default_rng(2)
    y = rng.choice(["ash", "oak"], 10_000)
    x = rng.normal(size=(10_000, 4)) + 2.0 * (y == "oak")[:, None] * [1, 0, 0, 0]
    given = {"classes": ["ash", "oak"], "bounds": Bounds(-6, 8), "relation": relation}
    fit = RayleighFlowLDA(n_directions=1, **given).fit(x, y)
    assert abs(fit.directions_[0, 0]) > 0.98 and (fit.predict(x) == y).mean() > 0.82  # the best rule has 0.841
    with pytest.raises(InputError, match="n_directions must be 1"):
        RayleighFlowLDA(n_directions=2, **given).fit(x, y)


@pytest.mark.parametrize("rho", [None, 1e6])
def test_printed_flows_of_pairs_and_classes_are_flagged_and_near_exact_with_a_huge_budget(rho):
    rng = np.random.default_rng(3)
    given = {"bounds": Bounds(-9, 9), "calibration": "paper", "rho": rho}
    x, y = rng.normal(size=(5000, 3)), rng.normal(size=(5000, 2))
    y[:, 0] += 2 * x[:, 1]
    classes = rng.choice(["ash", "oak"], 5000)
    z = rng.normal(size=(5000, 3)) + 3.0 * (classes == "oak")[:, None] * [0, 0, 1] - [0, 0, 1.5]
    with pytest.warns(PrivacyWarning, match="calibration='paper'"):
        pair = RayleighFlowCCA(1, y_bounds=Bounds(-9, 9), **given).fit(x, y)
    with pytest.warns(PrivacyWarning, match="calibration='paper'"):
        rule = RayleighFlowLDA(n_directions=1, classes=["ash", "oak"], **given).fit(z, classes)
    assert pair.ledger_.total(1e-6) == np.inf == rule.ledger_.total(1e-6)
    assert pair.transform(x).shape == (5000, 1) == rule.transform(z).shape and not hasattr(rule, "predict")
    if rho is not None:
        assert abs(pair.x_weights_[0, 1]) > 0.99 and abs(rule.directions_[0, 2]) > 0.99


def test_printed_flows_need_bounds_and_declared_classes():
    x, y = np.zeros((9, 2)), np.zeros((9, 2))
    with pytest.raises(InputError, match="bounds must be given"):
        RayleighFlowCCA(1, bounds=BOX, calibration="paper").fit(x, y)
    with pytest.raises(InputError, match="bounds must be given"):
        RayleighFlowLDA(n_directions=1, calibration="paper").fit(x, y[:, 0])
    with pytest.raises(InputError, match="classes must list"):
        RayleighFlowLDA(n_directions=1, calibration="paper", bounds=BOX).fit(x, list("aabbaabba"))


FORMER = (PrivateSIR, PrivateSparseSIR, PrivatePCA, PrivateSparsePCA, PrivateLDA, PrivateCCA)


@pytest.mark.parametrize("kind", FORMER)
def test_a_method_that_has_moved_is_refused_with_its_new_place(kind):
    import sfumato.research

    for method, name in MOVED[kind.__name__].items():
        with pytest.raises(InputError, match=rf"^method='{method}' is .* use sfumato\.research\.{name}\.$"):
            kind(method=method, n_directions=1, bounds=BOX).explain(1000, 20)
        assert getattr(sfumato.research, name).__name__ == name


@pytest.mark.parametrize("given", [0, True, "many", 2.5, None])
def test_a_wrong_number_of_features_is_refused_by_name(given):
    with pytest.raises(InputError, match=r"^max_features must be"):
        DPSIni(bounds=BOX, max_features=given).explain(1000, 20)


def zero_inflated(n=20_000, p=6):
    """Six tenths of the responses are exactly zero; x lies off the centre of its box."""
    rng = np.random.default_rng(0)
    x = np.clip(0.6 + 0.5 * rng.normal(size=(n, p)), -1.5, 1.5)
    truth = np.zeros((1, p))
    truth[0, :2] = [np.sqrt(0.5), -np.sqrt(0.5)]
    latent = 2.0 * (x @ truth[0]) + 0.3 * rng.normal(size=n)
    return x, np.where(latent < np.quantile(latent, 0.6), 0.0, latent), truth


@pytest.mark.parametrize("name", ["DP-Ini", "DP-SIR", "DP-SIR, full batches", "Rayleigh flow"])
def test_a_response_of_which_most_is_one_value_is_sliced_rightly(name):
    x, y, truth = zero_inflated()
    kind, options = PAPER[name]
    fit = kind(1e8, 1e-5, 1, BOX, **options).fit(x, y)
    plain = subspace_distance(SIR(1, n_slices=20).fit(x, y).directions_, truth)
    assert subspace_distance(fit.directions_, truth) < 1.3 * plain + 0.01  # 1.0 and more with shares of 1/H


@pytest.mark.parametrize("calibration", ["tight", "paper"])
def test_more_classes_than_slices_are_joined_in_their_order(calibration):
    rng = np.random.default_rng(1)
    x = np.clip(0.5 * rng.normal(size=(20_000, 5)), -1.5, 1.5)
    y = rng.poisson(np.exp(1.0 + x[:, 0] - x[:, 1]))
    given = {"classes": list(range(60)), "n_slices": 8, "calibration": calibration}
    fit = DPIni(1e6, 1e-5, 1, BOX, **given).fit(x, y)
    assert subspace_distance(fit.directions_, np.array([[1.0, -1.0, 0, 0, 0]]) / np.sqrt(2)) < 0.05
    used = {int(found) for entry in fit.ledger_ for found in re.findall(r"(\d+) slices", entry.query)}
    assert len(used) == 1 and 5 <= max(used) <= 8  # a frequent class may fill more than an eighth


@pytest.mark.parametrize("options", [{"n_slices": 1}, {"n_slices": 2.5}, {"n_bins": 0}, {"n_bins": True}])
def test_slices_and_bins_are_checked_by_name(options):
    with pytest.raises(InputError, match=f"^{next(iter(options))} must be an integer"):
        DPIni(bounds=BOX, **options).explain(1000, 5)


def algorithm_2(x, y, k, radius, steps):
    """Algorithm 2 of the paper, written from its text: slices of 100 bins, start of Lemma G.3, no noise."""
    box = x / 1.5
    counts = np.bincount(np.searchsorted(arctan_edges(100), y, side="right"), minlength=100).astype(float)
    label = np.searchsorted(cut(counts, 20), y, side="right")
    means = np.array([box[label == h].mean(axis=0) for h in range(20)])
    kernel = (means.T * np.bincount(label, minlength=20) / len(y)) @ means
    covariance = box.T @ box / len(y)
    values, vectors = scipy.linalg.eigh(kernel, covariance)
    B = vectors[:, ::-1][:, :k] * np.sqrt(1.0 + values[::-1][:k])
    eta = 0.25 / np.linalg.eigvalsh(covariance)[-1]
    part = part_of(Records(x, y), steps)
    for t in range(steps):
        z, h = box[part == t], label[part == t]
        v = np.clip(z @ B, -radius, radius)
        kernel_term = sum(
            np.outer(z[h == j].mean(axis=0), v[h == j].sum(axis=0)) for j in range(20) if (h == j).any()
        ) / len(z)
        penalty_term = z.T @ v / len(z) @ (v.T @ v / len(z) - np.eye(k))
        B = B - 2.0 * eta * (-kernel_term + penalty_term)
    return np.linalg.qr(B)[0].T


@pytest.mark.parametrize(("model", "k"), [("M1", 1), ("M3", 2)])
def test_without_noise_the_printed_descent_is_algorithm_2_to_the_letter(model, k, monkeypatch):
    monkeypatch.setattr(printed_noise, "HISTOGRAM_EPSILON", 1e9)
    sample = xia(model, n=20_000, p=5, random_state=2)
    steps = int(np.log(20_000))
    found = DPSIR(1e9, 1e-5, k, BOX, calibration="paper").fit(sample.x, sample.y).directions_
    exact = {radius: algorithm_2(sample.x, sample.y, k, radius, steps) for radius in (2.0, 8.0)}
    assert subspace_distance(found, exact[2.0]) < 1e-3
    assert subspace_distance(found, exact[8.0]) > 5e-3  # what truncation at 4 * 2 instead would find


def test_validation_by_the_other_half_of_the_records_finds_the_true_number_of_features_most_often():
    """Two features count. Judged by the records they were made from, eight were taken in nine of ten runs."""
    sizes = []
    for seed in range(10):
        sample = xia("M1", n=2000, p=50, high_dimensional=True, random_state=seed)
        fit = DPSIni(1e9, 1e-5, 1, BOX, max_features="validate", random_state=seed).fit(sample.x, sample.y)
        sizes.append(len(fit.support_))
    assert np.bincount(sizes).argmax() == 2 and sizes.count(8) <= 3


def test_every_line_of_a_validated_fit_is_asked_and_charged():
    estimator = DPSSIR(1.0, 1e-5, 1, BOX, max_features="validate")
    sample = xia("M1", n=1000, p=30, high_dimensional=True, random_state=0)
    planned = [line.purpose for line in estimator.explain(1000, 30).plan.lines]
    fit = estimator.fit(sample.x, sample.y)
    assert [entry.purpose for entry in fit.ledger_] == planned and fit.ledger_.total() <= 1.0 + 1e-12
    halves = [entry.query for entry in fit.ledger_ if "each of 2 disjoint parts" in entry.query]
    assert len(halves) == 3  # peeling, candidates, validation
