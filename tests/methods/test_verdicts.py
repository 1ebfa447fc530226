"""What the family says about its own fits."""

import pickle

import numpy as np
import pytest

from sfumato import Bounds, PrivateCCA, PrivateDR, PrivateLDA, PrivatePCA, PrivatePHD, PrivateSAVE

N = 20_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
CURVED = X[:, 1] ** 2 + 0.5 * RNG.normal(size=N)
CLASSES = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
SECOND = RNG.normal(size=(N, 2)) + np.outer(X[:, 0], [1.0, 0.0])
KNOWN = {"n_directions": 1, "epsilon": 1.0, "bounds": Bounds(-6, 6)}
CASES = {
    "save": (PrivateSAVE, {}, X, CURVED),
    "dr": (PrivateDR, {}, X, CURVED),
    "phd": (PrivatePHD, {}, X, CURVED),
    "lda": (PrivateLDA, {"classes": [0, 1]}, X, CLASSES),
    "pca": (PrivatePCA, {}, X * [2.0, 1.0, 1.0, 1.0], None),
    "cca": (PrivateCCA, {"y_bounds": Bounds(-6, 6)}, X, SECOND),
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
