"""A survey in waves: questions adapt to earlier answers, and nobody pays more than epsilon."""

import math
from itertools import product

import numpy as np
import pytest

from sfumato import LabelPrivateSIR, subspace_distance
from sfumato.errors import InputError
from sfumato.local import Answers, NumberRandomiser, Survey, ThresholdRandomiser
from sfumato.local.location import believe, prior
from sfumato.local.randomisers import join
from sfumato.local.waves import fit_answers, fit_index, run_survey
from sfumato.privacy.noise import SeededNoise
from sfumato.simulate import xia

X = np.array([[0.0, 1.0], [1.0, -1.0], [-1.0, 0.5], [0.3, 0.3], [2.0, 0.0], [-0.5, -2.0]])


def tree(survey):
    """What is asked of the second wave after each possible answer of the first: no label is in it."""
    first, second = (np.flatnonzero(survey.wave_of(range(len(X))) == number) for number in range(2))
    opening = survey.ask(0, X[first], X[:0], None)
    replies = {
        early: survey.ask(1, X[second], X[first], Answers(np.array(early), opening))
        for early in product((0, 1), repeat=len(first))
    }
    return first, second, opening, replies


def law(epsilon, questions, y):
    """The probability of every possible sequence of answers, worked out question by question."""
    first, second, opening, replies = questions
    kept = 1.0 / (1.0 + math.exp(-epsilon))

    def chance(form, values, rows):
        return np.prod(np.where(form.truths(y[rows]) == values, kept, 1.0 - kept))

    return {
        early + late: chance(opening, early, first) * chance(reply, late, second)
        for early, reply in replies.items()
        for late in product((0, 1), repeat=len(second))
    }


def test_no_outcome_of_all_waves_tells_more_than_epsilon_about_one_label():
    """Every sequence of answers, every person: the exact likelihood ratio, which is attained and never exceeded."""
    survey, y = Survey(0.7, (0.5, 0.5), 0, "key", (-1.0, 0.0, 1.0)), np.linspace(-2.0, 2.0, len(X))
    questions = tree(survey)
    assert min(len(questions[0]), len(questions[1])) >= 2
    before = law(survey.epsilon, questions, y)
    assert sum(before.values()) == pytest.approx(1.0, abs=1e-12)
    largest = 0.0
    for person, value in product(range(len(X)), (-1e9, 1e9)):
        after = law(survey.epsilon, questions, np.where(np.arange(len(X)) == person, value, y))
        ratios = [abs(math.log(before[told] / after[told])) for told in before]
        assert max(ratios) <= survey.epsilon * (1 + 1e-9)
        largest = max(largest, *ratios)
    assert largest == pytest.approx(survey.epsilon)


def test_later_questions_follow_from_earlier_answers():
    survey = Survey(0.7, (0.5, 0.5), 0, "key", (-1.0, 0.0, 1.0))
    thresholds = {tuple(reply.thresholds) for reply in tree(survey)[-1].values()}
    assert len(thresholds) > 1


def test_everybody_is_in_one_wave_that_the_key_and_the_id_alone_decide():
    survey = Survey.plan(1.0, 5_000, 6, "a")
    wave = survey.wave_of(range(5_000))
    assert np.array_equal(wave, survey.wave_of(str(i) for i in range(5_000)))
    assert np.array_equal(wave[::-1], survey.wave_of(reversed(range(5_000))))
    other = Survey.plan(1.0, 5_000, 6, "b").wave_of(range(5_000))
    # two keys agree by chance: 0.25 of the people, and 0.05 is eight standard deviations
    assert abs((wave == other).mean() - sum(share**2 for share in survey.shares)) < 0.05
    assert np.bincount(wave, minlength=6) / 5_000 == pytest.approx(survey.shares, abs=0.05)
    assert sum(survey.shares) == pytest.approx(1.0)


@pytest.mark.parametrize("model", ["M1", "M2"])
def test_waves_are_nearer_than_one_question_to_all(model):
    sample = xia(model, n=8_000, p=6, random_state=3)
    once, waves = (
        LabelPrivateSIR(1.0, 1, waves=number, random_state=1).fit(sample.x, sample.y) for number in (None, 6)
    )
    losses = [subspace_distance(fitted.directions_, sample.directions) for fitted in (once, waves)]
    assert losses[1] < 0.7 * losses[0]
    assert waves.ledger_.spent() == once.ledger_.spent() == pytest.approx(1.0)
    assert 0.5 < waves.eigenvalues_[0] < 1.0


def test_late_questions_lie_where_y_does():
    """The last threshold of a person is near their own y, not near the median of all."""
    sample = xia("M1", n=8_000, p=5, random_state=1)
    survey = Survey.plan(3.0, len(sample.x), 6, "k")
    answers, rows = run_survey(survey, sample.x, sample.y, SeededNoise(0))
    last = survey.wave_of(range(len(sample.x)))[rows] == 5
    gap = sample.y[rows][last] - answers.form.thresholds[last]
    assert np.abs(gap).mean() < 0.4 * np.abs(sample.y - np.median(sample.y)).mean()


def test_the_analyst_gives_the_same_direction_from_the_answers_alone():
    sample = xia("M1", n=2_000, p=4, random_state=0)
    survey = Survey.plan(2.0, 2_000, 4, "k")
    answers, rows = run_survey(survey, sample.x, sample.y, SeededNoise(5))
    fitted = LabelPrivateSIR().fit(sample.x[rows], answers)
    assert np.array_equal(fitted.directions_[0], fit_answers(sample.x[rows], answers).direction)
    assert fitted.ledger_.total() == math.inf  # the noise was seeded
    assert fitted.form_ is answers.form


def test_the_likelihood_has_the_gradient_it_says():
    from sfumato.local.waves import _level_basis, _Likelihood, _sharpness_basis

    rng = np.random.default_rng(0)
    position = rng.uniform(-4, 4, 50)
    likelihood = _Likelihood(
        rng.standard_normal((50, 3)), _level_basis(position), _sharpness_basis(position), rng.integers(0, 2, 50), 0.2
    )
    at = rng.standard_normal(len(likelihood.start(position))) * 0.3
    _, gradient = likelihood(at)
    for i, slope in enumerate(gradient):
        step = np.eye(len(at))[i] * 1e-5
        assert (likelihood(at + step)[0] - likelihood(at - step)[0]) / 2e-5 == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_the_search_finds_the_middle_at_any_scale(scale):
    y = np.random.default_rng(0).lognormal(size=2_000) * scale
    answers = None
    for batch in np.array_split(y, 4):
        belief = prior() if answers is None else believe(answers)
        form = ThresholdRandomiser(1.0, belief.quantiles((np.arange(len(batch)) + 0.5) / len(batch)))
        answers = join(answers, form.randomize(batch, SeededNoise(len(batch))))
    lower, middle, upper = believe(answers).quantiles(np.array([0.25, 0.5, 0.75]))
    assert 0.35 < np.mean(y < middle) < 0.65
    assert np.mean(y < lower) < np.mean(y < middle) < np.mean(y < upper)


@pytest.mark.parametrize("told", [0, 1])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 1e6])
def test_no_answers_are_too_odd_to_go_on(told, epsilon):
    x = np.vstack([X, X * [1e300, 0.0]])
    form = ThresholdRandomiser(epsilon, np.zeros(len(x)))
    survey = Survey.plan(epsilon, len(x), 4, "k")
    with np.errstate(all="raise"):
        for wave in range(4):
            asked = survey.ask(wave, x, x, Answers(np.full(len(x), told), form))
            assert np.isfinite(asked.thresholds).all()
        direction = fit_index(x[:0], np.empty(0), np.empty(0, dtype=np.int64), 0.3, np.zeros(2), np.ones(2)).direction
    assert np.linalg.norm(direction) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"waves": 1}, "waves"),
        ({"waves": 2.5}, "waves"),
        ({"waves": 3, "classes": [0, 1]}, "classes"),
        ({"waves": 3, "edges": [0.0]}, "edges"),
        ({"waves": 3, "pilot": 0.9}, "pilot"),
        ({"waves": 3, "n_directions": 2}, "n_directions"),
        ({"waves": 3, "n_active": 1}, "n_active"),
    ],
)
def test_what_waves_cannot_do_is_refused_in_a_sentence(options, word):
    with pytest.raises(InputError, match=f"^{word} must"):
        LabelPrivateSIR(**options).fit(X, np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0]))


def test_answers_of_different_kinds_do_not_mix():
    form = ThresholdRandomiser(1.0, [0.0])
    with pytest.raises(InputError, match="epsilons"):
        join(form.randomize([1.0]), ThresholdRandomiser(2.0, [0.0]).randomize([1.0]))
    with pytest.raises(InputError, match="thresholds"):
        join(form.randomize([1.0]), NumberRandomiser(0, 1, 1.0).randomize([1.0]))
    with pytest.raises(InputError, match="one value for each"):
        form.randomize([1.0, 2.0])
