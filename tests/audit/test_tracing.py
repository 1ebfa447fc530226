"""The tracing attack: it finds members in a raw direction, not in a private one."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from sfumato import Budget, InputError
from sfumato.audit.releases import Pair
from sfumato.audit.tracing import SignedSum, normal_scores, private_direction, raw_direction, roc_svg, trace
from sfumato.privacy.noise import SeededNoise
from sfumato.records import Records


def people(n=250, p=13):
    rng = np.random.default_rng(3)
    x = np.exp(rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) / 4)
    return x, x[:, 0] + 0.3 * rng.standard_normal(n)


def test_a_raw_direction_betrays_its_data_and_a_private_one_does_not():
    estimates = {"raw": raw_direction, "private": private_direction(Budget.approximate(1, 1e-5), SeededNoise(1))}
    raw, private = trace(*people(150, 40), estimates, splits=40)
    assert raw.area > 0.62
    assert abs(private.area - 0.5) < 0.05
    assert raw.true_positive[-1] == raw.false_positive[-1] == 1.0
    (paper,) = trace(*people(150, 40), {"raw": raw_direction}, attack="paper")
    assert paper.area > 0.62


def test_the_picture_is_well_formed():
    curves = trace(*people(60, 3), {"raw <&>": raw_direction}, splits=3)
    picture = roc_svg(curves)
    assert ElementTree.fromstring(picture).tag.endswith("svg") and "area" in picture


def test_scores_are_standard_and_bounds_are_attained():
    z = normal_scores(people()[0])
    assert np.allclose(np.cov(z.T), np.eye(z.shape[1]), atol=1e-6)
    x = np.array([[100.0, 0.0]])
    pair = Pair(SignedSum(2, 1.5), "replace", Records(x, np.array([1.0])), Records(-x, np.array([1.0])))
    assert 0.999 < pair.realised <= 1.0


def test_too_few_people_are_refused():
    with pytest.raises(InputError, match="at least 10"):
        trace(np.ones((5, 2)), np.ones(5), {"raw": raw_direction})


def test_scores_of_different_splits_are_not_compared():
    """The paper's score has one known record of its own in every split, which moves all scores of that split."""
    x, y = people(150, 40)
    sign, z = np.where(y > np.median(y), 1.0, -1.0), normal_scores(x)
    rng, areas = np.random.default_rng(0), []
    for _ in range(30):
        order = rng.permutation(150)
        inside, outside, known = order[:74], order[74:148], order[148]
        scores = (z * sign[:, None] - z[known] * sign[known]) @ raw_direction(z[inside], sign[inside])
        areas.append((scores[inside][:, None] > scores[outside]).mean())
    (curve,) = trace(x, y, {"raw": raw_direction}, attack="paper", splits=30)
    assert curve.area == pytest.approx(np.mean(areas), abs=1e-12)
