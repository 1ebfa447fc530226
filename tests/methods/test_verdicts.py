"""What the family says about its own fits."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kurtosis
from tests.clock import quickest

import sfumato as sf
from sfumato.bounds import PartialBounds
from sfumato.forecast.assessment import Verdict, _compare
from sfumato.forecast.belief import with_next
from sfumato.forecast.described import HIDDEN, _clipped_moments
from sfumato.forecast.evidence import Evidence
from sfumato.methods.sir import Task
from sfumato.records import Response
from sfumato.release import Release
from sfumato.schema import LARGEST
from sfumato.simulate import xia
from sfumato.steps.descent import schedule_of
from sfumato.steps.links import Links
from sfumato.steps.symmetric import noise_edge

N = 20_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
CURVED = X[:, 1] ** 2 + 0.5 * RNG.normal(size=N)
CLASSES = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
SECOND = RNG.normal(size=(N, 2)) + np.outer(X[:, 0], [1.0, 0.0])
KNOWN = {"n_directions": 1, "epsilon": 1.0, "bounds": sf.Bounds(-6, 6)}
CASES = {
    "save": (sf.PrivateSAVE, {}, X, CURVED),
    "dr": (sf.PrivateDR, {}, X, CURVED),
    "phd": (sf.PrivatePHD, {}, X, CURVED),
    "lda": (sf.PrivateLDA, {"classes": [0, 1]}, X, CLASSES),
    "pca": (sf.PrivatePCA, {}, X * [2.0, 1.0, 1.0, 1.0], None),
    "cca": (sf.PrivateCCA, {"y_bounds": sf.Bounds(-6, 6)}, X, SECOND),
}


@pytest.mark.judged
@pytest.mark.parametrize("name", CASES)
def test_a_clear_direction_is_reliable_and_noise_is_part_of_its_error(name):
    kind, more, x, y = CASES[name]
    fit = kind(**KNOWN, **more).fit(x, y)
    assert fit.verdict_.level == "reliable"
    truth = np.eye(4)[1 if name in ("save", "dr", "phd") else 0]
    truth = truth * np.sign(fit.directions_[0] @ truth)
    assert (np.abs(fit.directions_[0] - truth) < 6.0 * fit.standard_errors_[0] + 1e-3).all()
    assert fit.standard_errors_.max() < 0.2
    assert np.linalg.norm(fit.privacy_errors_) < 1.5 * np.linalg.norm(fit.standard_errors_)


@pytest.mark.judged
@pytest.mark.parametrize("name", ["save", "lda", "cca"])
def test_shuffled_responses_are_not_called_reliable(name):
    kind, more, x, y = CASES[name]
    fit = kind(**KNOWN, **more).fit(x, RNG.permutation(y))
    assert fit.verdict_.level != "reliable" and fit.standard_errors_.max() > 0.1


def test_a_fit_is_judged_alike_after_it_was_pickled():
    kind, more, x, y = CASES["lda"]
    fit = kind(**KNOWN, **more).fit(x, y)
    again = pickle.loads(pickle.dumps(fit))
    assert np.array_equal(again.standard_errors_, fit.standard_errors_) and again.verdict_ == fit.verdict_


@pytest.mark.filterwarnings("ignore:random_state")
def test_two_fits_of_mostly_equal_responses_differ_by_no_more_than_they_say():
    known = {"bounds": sf.Bounds([20, 7, 0, 0], [90, 48, 4, 1]), "n_directions": 1, "method": "descent"}
    fits = []
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        age, bmi, visits = rng.uniform(20, 90, N // 2), rng.normal(27, 5, N // 2), rng.poisson(0.15, N // 2)
        smoker = rng.random(N // 2) < 0.2
        need = 0.05 * (age - 55) + 0.6 * visits + 0.8 * smoker + rng.logistic(size=N // 2)
        x = np.column_stack([age, bmi, visits, smoker])
        fits.append(sf.PrivateSIR(random_state=seed, **known).fit(x, np.where(need > 2.2, np.exp(need), 0.0)))
    one, other = fits
    apart = np.abs(one.directions_ - other.directions_ * np.sign((one.loadings_ * other.loadings_).sum()))
    assert (apart < 4.0 * np.hypot(one.standard_errors_, other.standard_errors_)).all()


@pytest.mark.filterwarnings("ignore:random_state")
def test_a_fit_is_not_called_reliable_where_a_scale_is_a_guess(few_stand_ins):
    y = X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=N)
    levels, errors = {}, {}
    for value in (0.0, 7.0):  # far from zero a feature without spread is taken for so wide that it weighs nothing
        x = np.column_stack([X, np.full(N, value)])
        fit = sf.PrivateSIR(n_directions=1, random_state=0).fit(x, y)
        assert fit.unseen_features_.tolist() == [4]
        levels[value], errors[value] = fit.verdict_.level, fit.standard_errors_[0, 4]
    given = sf.PrivateSIR(n_directions=1, bounds={4: (0, 1)}, random_state=0)
    given.fit(np.column_stack([X, np.zeros(N)]), y)
    assert levels == {0.0: "weak", 7.0: "reliable"} and given.verdict_.level == "reliable"
    assert errors[0.0] >= 0.5 > errors[7.0]  # two of it reach all that an entry of a unit row can be


@pytest.mark.filterwarnings("ignore:random_state")
def test_features_that_add_up_to_a_constant_do_so_in_populations_that_are_flat(few_stand_ins):
    rng = np.random.default_rng(0)
    ward = rng.integers(0, 3, N)
    x = np.column_stack([X[:, 0], *(ward == k for k in range(3))])
    known = {"n_directions": 1, "bounds": sf.Bounds([-5, 0, 0, 0], [5, 1, 1, 1])}
    y = x[:, 0] + x[:, 1] + 0.5 * rng.normal(size=N)
    beliefs = [sf.PrivateSIR(random_state=seed, **known).fit(x, y)._assessment for seed in range(5)]
    points = [belief.possible(np.random.default_rng(0), True).x[:, 1:] for belief in beliefs]
    parts = [each.sum(axis=1).var() / each.var(axis=0).sum() for each in points]
    assert max(parts) < 0.1
    assert np.median(parts) < 0.01  # in some of them noise alone shows a variance


def fits_to_m1(n, seeds):
    known = {"n_directions": 1, "bounds": sf.Bounds(-1.5, 1.5), "method": "descent"}
    for seed in seeds:
        sample = xia("M1", n=n, p=10, random_state=seed)
        yield sf.PrivateSIR(random_state=seed, **known).fit(sample.x, sample.y)


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_errors_are_about_as_large_as_fits_scatter():
    fits = list(fits_to_m1(3_000, range(12)))
    found = np.array([fit.directions_[0] for fit in fits])
    found *= np.sign(found @ found[0])[:, None]
    said = np.median([fit.standard_errors_[0] for fit in fits[:3]], axis=0)
    assert 0.7 < np.median(said / found.std(axis=0)) < 3.0


@pytest.mark.filterwarnings("ignore:random_state")
def test_no_axis_is_flat_whose_variance_shows():
    evidence = next(fits_to_m1(3_000, [0]))._assessment.evidence
    n, p, noise = evidence.n, 10, evidence.moments.noise_std
    edge = noise_edge(float(noise[p]) / n, p)  # of the worst axis; the noise along one is less than a quarter of it
    variances = edge * np.array([0.0, 0.7, *[5.0] * 8])
    moments = Release(n * np.concatenate([np.zeros(p), np.diag(variances)[np.triu_indices(p)]]), noise)
    seen, flat = (_clipped_moments(replace(evidence, moments=moments), HIDDEN, flat)[1] for flat in (False, True))
    assert flat[0, 0] < 0.5 * seen[0, 0]
    assert flat.diagonal()[1:] == pytest.approx(seen.diagonal()[1:])


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_populations_have_a_next_direction_only_where_its_p_value_leaves_it_likely():
    belief, second = next(fits_to_m1(3_000, [0]))._assessment, {}
    for p_value in (1e-6, 0.5):
        told = replace(belief, choice=replace(belief.choice, p_values=np.array([1e-6, p_value])))
        truths = [world.truth for world in told.worlds]
        second[p_value] = max(truth.links.explained(truth.probabilities)[1] for truth in truths)
    assert second[0.5] < 0.05 and second[1e-6] > 0.1


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_what_noise_shows_beside_a_direction_is_not_taken_for_the_next_one():
    signals = [fit._assessment._signal.parts for fit in fits_to_m1(10_000, range(3))]
    assert np.min(signals, axis=0)[0] > 0.6 and np.median(signals, axis=0)[1] < 0.02


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_fits_to_one_table_differ_by_no_more_than_noise_is_said_to_make():
    rng = np.random.default_rng(0)
    age, visits, smoker = rng.uniform(20, 90, N // 2), rng.poisson(0.15, N // 2), rng.random(N // 2) < 0.2
    need = 0.05 * (age - 55) + 0.6 * visits + 0.8 * smoker + rng.logistic(size=N // 2)
    x, y = np.column_stack([age, rng.normal(27, 5, N // 2), visits, smoker]), np.where(need > 2.2, np.exp(need), 0.0)
    known = {"bounds": sf.Bounds([20, 7, 0, 0], [90, 48, 4, 1]), "n_directions": 1, "method": "descent"}
    fits = [sf.PrivateSIR(random_state=seed, **known).fit(x, y) for seed in range(8)]
    found = np.array([fit.directions_[0] for fit in fits])
    found *= np.sign(found[:, 3])[:, None]
    said = np.array([fit.privacy_errors_[0] for fit in fits[:2]])
    assert (np.abs(found[:, None] - np.median(found, axis=0)) <= 2.0 * said).mean() > 0.85
    assert (said <= [fit.standard_errors_[0] for fit in fits[:2]]).all()


@pytest.mark.judged
def test_heavy_tails_that_vary_by_chance_are_no_finding_of_second_moments():
    found = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x = np.column_stack([rng.exponential(size=3_000) ** 2, rng.random(3_000) < 0.01, rng.normal(size=3_000)])
        y = rng.exponential(size=3_000)
        known = {"bounds": sf.Bounds([0, 0, -5], [60, 1, 5]), "n_directions": 1, "random_state": seed}
        found += [kind(**known).fit(x, y).verdict_.level != "noise" for kind in (sf.PrivateSAVE, sf.PrivatePHD)]
    assert sum(found) <= 1


@pytest.mark.judged
def test_pairs_of_a_test_have_the_tails_that_the_distances_tell():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=N), rng.random(N) < 0.01])
    known = {"bounds": sf.Bounds([-5, 0], [5, 1]), "y_bounds": sf.Bounds([-5, 0], [5, 1])}
    belief = sf.PrivateCCA(n_directions=1, random_state=0, **known).fit(x, rng.permutation(x))._assessment
    populations = [belief.null(0, rng).x for _ in range(6)]
    tails = np.median([kurtosis(points, fisher=False) for points in populations], axis=0)
    assert tails[[1, 3]].min() > 40.0 > tails[[0, 2]].max()


@pytest.mark.parametrize("kind", [sf.PrivateSIR, sf.PrivateSparseSIR, sf.PrivateLDA, sf.PrivateSAVE, sf.PrivateDR])
@pytest.mark.filterwarnings("ignore:random_state")
def test_a_declared_class_without_records_is_told_from_the_others(kind):
    x = np.random.default_rng(0).normal(size=(3_000, 3))
    fit = kind(bounds=sf.Bounds(-5, 5), classes=[0, 1, 7], random_state=0).fit(x, (x[:, 0] > 0).astype(int))
    assert fit.unseen_classes_ == (7,)


@pytest.mark.parametrize("kind", [sf.PrivateSIR, sf.PrivateSAVE, sf.PrivateDR])
@pytest.mark.filterwarnings("ignore:random_state")
def test_a_category_without_records_is_told_from_those_with_some(kind):
    rng = np.random.default_rng(0)
    ward = rng.choice(4, N, p=[0.6, 0.3, 0.1, 0.0])
    frame = pd.DataFrame({"age": rng.uniform(20, 90, N)} | {f"ward={i}": ward == i for i in (1, 2, 3)})
    fit = kind(n_directions=1, bounds={"age": (0, 120)}, random_state=0).fit(frame, frame["age"] + 20.0 * ward)
    assert fit.rare_features_ == ("ward=3",)


@pytest.mark.judged
def test_skewed_features_are_no_finding_where_classes_are_unequal():
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(10_000, 8)) + 0.8 * rng.normal(size=(10_000, 1))
        x[:, 1::4] = x[:, 1::4] > 1.2
        x[:, 2::4] = np.where(x[:, 2::4] > 0.6, np.exp(x[:, 2::4]), 0.0)
        y = rng.choice(3, p=[0.5, 0.3, 0.2], size=10_000)
        known = {"bounds": sf.Bounds(x.min(axis=0), x.max(axis=0)), "classes": [0, 1, 2], "method": "descent"}
        found.append(sf.PrivateSIR(**known, n_directions=1, random_state=seed).fit(x, y).verdict_.level != "noise")
    assert sum(found) <= 1


@pytest.mark.parametrize("method", ["descent", "one-shot"])
@pytest.mark.filterwarnings("ignore:random_state")
def test_as_many_directions_as_features_are_judged_like_fewer(method):
    known = {"n_directions": 4, "bounds": sf.Bounds(-6, 6), "method": method, "random_state": 0}
    fit = sf.PrivateSIR(**known).fit(X, np.zeros(N))
    assert fit.eigenvalues_.shape == (4,) and fit.standard_errors_.shape == (4, 4)


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_a_verdict_speaks_of_each_direction():
    y = X[:, 0] + 0.5 * np.random.default_rng(1).normal(size=N)
    fit = sf.PrivateSIR(n_directions=2, bounds=sf.Bounds(-6, 6), random_state=0).fit(X, y)
    verdict = fit.verdict_
    assert verdict.levels == ("reliable", "noise") and verdict.level == "weak"
    assert verdict.headline == "Reliable in part"
    first, second, _ = verdict.sentence.replace(".", ";").split("; ", 2)
    assert first == "The first direction would come out nearly the same on a fresh sample"
    assert second == "the second does not stand out of the noise"
    assert len(fit.choice_.p_values) == 2  # the second did not pass, so that no third one was looked at
    nothing = sf.PrivateSIR(n_directions=2, bounds=sf.Bounds(-6, 6), random_state=0).fit(X, RNG.permutation(y))
    assert nothing.verdict_.level == "noise" and nothing.verdict_.levels == ("noise", "noise")


def test_no_direction_beyond_the_next_one_is_tested_unless_all_are_looked_for(few_stand_ins):
    y = X[:, 0] + 0.1 * RNG.normal(size=N)
    fit = sf.PrivateSIR(n_directions=1, bounds=sf.Bounds(-6, 6)).fit(np.column_stack([X, X**3]), y)
    assert len(fit.choice_.p_values) <= 2


def test_the_next_link_is_taken_for_no_stronger_than_the_last_that_was_kept():
    rare = np.array([[1.0, 0.01], [-1.0, 0.01], [0.0, -0.02]])  # the second function hardly varies
    first = Links(np.array([0.2, 0.1]), np.eye(4)[:, :2], rare)
    links = Links(np.array([0.4]), np.eye(4)[:, :1], rare[:, :1])
    shown = with_next(first, links, 1, np.full(3, 1 / 3)).explained(np.full(3, 1 / 3))
    assert shown[1] == pytest.approx(shown[0])


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_two_classes_leave_room_for_one_direction_only():
    known = {"n_directions": 1, "bounds": sf.Bounds(-6, 6), "method": "descent", "random_state": 0}
    fit = sf.PrivateSIR(classes=[0, 1], **known).fit(X, CLASSES)
    assert len(fit._assessment._linked.strengths) == 1


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_all_that_is_said_of_thirty_features_takes_two_seconds():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(10_000, 30)) + 0.5 * rng.normal(size=(10_000, 1))
    y = x[:, 0] + x[:, 1] + 0.5 * (x[:, 2] - x[:, 3]) + 0.5 * rng.normal(size=10_000)

    def judged(i):
        fit = sf.PrivateSIR(n_directions=2, bounds=sf.Bounds(-6, 6), method="descent", random_state=i).fit(x, y)
        return fit.choice_.p_values, fit.standard_errors_, fit.loadings_errors_, fit.verdict_

    assert quickest(judged, 2.0)[0] < 2.0  # with the fit itself


@pytest.mark.parametrize(("levels", "headline"), [((), "Weak"), (("weak", "noise"), "Weak"), (("noise",), "Weak")])
def test_a_headline_says_no_more_than_the_levels(levels, headline):
    assert Verdict("weak", "", levels).headline == headline


def with_far_ones(part, seed=1):
    """Records of which a part lies hundreds of times farther out in the last feature than all others."""
    rng = np.random.default_rng(seed)
    amount = np.exp(0.5 * rng.normal(size=N)) * np.where(rng.random(N) < part, 300.0, 1.0)
    x = np.column_stack([rng.normal(size=(N, 2)), amount])
    return x, x[:, 0] + 0.5 * rng.normal(size=N)


@pytest.mark.filterwarnings("ignore:random_state")
def test_lengths_tell_how_many_records_may_lie_beyond_the_box_and_bounds_how_far():
    known = {"n_directions": 1, "method": "descent", "epsilon": 0.5, "random_state": 1}

    def evidence(part, farthest):
        bounds = sf.Bounds([-5, -5, 0], [5, 5, farthest])
        return sf.PrivateSIR(bounds=bounds, **known).fit(*with_far_ones(part))._assessment.evidence

    some = evidence(0.03, 2000)
    assert some.beyond[2] > 0.1 and not some.beyond[:2].any()  # none can lie beyond (-5, 5)
    assert evidence(0.0, 2000).beyond[2] < 0.05 and not evidence(0.03, 4).beyond.any()
    nobody_knows = replace(some, reading=replace(some.reading, known=PartialBounds.nothing(3)))
    assert 0.01 < nobody_knows.beyond.min() < some.beyond[2]


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_a_direction_is_not_reliable_where_records_far_out_would_have_other_scores(monkeypatch):
    x, y = (part[:4_000] for part in with_far_ones(0.0))
    estimator = sf.PrivateSIR(n_directions=1, bounds=sf.Bounds([-5, -5, 0], [5, 5, 8]), random_state=0)
    verdict = estimator.fit(x, y).verdict_
    assert verdict.levels == ("reliable",) and "box_" not in verdict.sentence
    monkeypatch.setattr(Evidence, "beyond", property(lambda self: np.array([0.0, 10.0, 10.0])))
    again = estimator.fit(x, y)
    assert again._assessment.alikeness[0] < 0.9 <= again._assessment.alikeness_inside[0]
    assert again.verdict_.levels == ("weak",) and "Of records within `box_`" in again.verdict_.sentence
    assert "times the records" not in again.verdict_.sentence  # within the box there are enough


def test_the_edge_of_a_test_is_a_number_that_a_model_file_holds():
    """Of two features nothing may be left to tell by: what comes out by chance then spreads over any size."""
    rng = np.random.default_rng(0)
    _, edge = _compare(1.0, iter(np.exp(rng.normal(scale=300.0, size=100).clip(-600, 600))))
    assert 1e9 < edge < LARGEST
    tried = [sf.PrivatePCA(n_directions=2, bounds=sf.Bounds(-3, 3)).fit(np.round(X[:60, :2])) for _ in range(3)]
    assert all(fit.choice_.edge < LARGEST for fit in tried)


@pytest.mark.filterwarnings("ignore:random_state")
def test_a_number_that_is_chosen_is_tested_as_one_that_is_given():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(50.0, 12.0, 4_000), rng.gamma(2.0, 3.0, 4_000), rng.poisson(2.0, 4_000)])
    y = 0.05 * x[:, 0] + 0.2 * x[:, 1] + 0.5 * rng.normal(size=4_000)
    chosen, given = (sf.PrivateSIR(1.0, 1e-6, n_directions=k, random_state=3).fit(x, y).choice_ for k in ("auto", 1))
    assert chosen.p_values[0] < 3.0 * given.p_values[0] and chosen.announced == 1


@pytest.mark.judged
@pytest.mark.filterwarnings("ignore:random_state")
def test_unequal_classes_are_not_announced_for_features_that_are_long_in_the_same_records():
    """Clipping takes more from the rare class, and long records are long in all features, to the same side."""
    rng = np.random.default_rng(0)
    u = rng.normal(size=(10_000, 8)) + 0.8 * rng.normal(size=(10_000, 1))
    u[:, 1::4] = u[:, 1::4] > 1.2
    u[:, 2::4] = np.where(u[:, 2::4] > 0.6, np.exp(u[:, 2::4]), 0.0)
    bounds, found = sf.Bounds(u.min(axis=0), u.max(axis=0)), []
    for seed in range(6):
        y = rng.choice(3, len(u), p=[0.5, 0.3, 0.2])
        sir = sf.PrivateSIR(n_directions=1, bounds=bounds, method="descent", classes=[0, 1, 2], random_state=seed)
        found.append(sir.fit(u, y).choice_.p_values[0])
    assert min(found) > 0.01


def test_one_shot_asks_about_as_many_slices_as_a_descent_has_cosines():
    few, many = (schedule_of(10, n, 0.24) for n in (1_000, 100_000))
    tasks = [Task(10, 1_000, Response(), 1, sf.Bounds(-1, 1), "one-shot", schedule=each) for each in (few, many)]
    assert [task.solver.n_slices for task in tasks] == [4, 10]
