"""PrivateSIR is a scikit-learn estimator."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from sfumato import Bounds, PrivateSIR
from sfumato.errors import PrivacyWarning


@parametrize_with_checks(
    [PrivateSIR(bounds="search", method=method, random_state=0, picture=True) for method in ("auto", "one-shot")]
)
def test_scikit_learn_finds_nothing_to_object_to(estimator, check):
    check(estimator)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    return x, x[:, 0] + 0.1 * rng.normal(size=400)


def test_it_works_in_a_pipeline_under_cross_validation(data):
    model = make_pipeline(
        PrivateSIR(epsilon=20, n_directions=2, bounds=Bounds(-4, 4), random_state=0), LinearRegression()
    )
    assert cross_val_score(model, *data, cv=3).shape == (3,)


def test_output_can_be_a_data_frame_with_named_columns(data):
    x, y = data
    sir = PrivateSIR(n_directions=2, bounds="search", random_state=0).set_output(transform="pandas")
    frame = pd.DataFrame(x, columns=["a", "b", "c"], index=np.arange(400) + 7)
    out = sir.fit(frame, y).transform(frame)
    assert list(out.columns) == list(sir.get_feature_names_out()) == ["privatesir0", "privatesir1"]
    assert (out.index == frame.index).all()
    assert list(sir.feature_names_in_) == ["a", "b", "c"]


def test_a_clone_has_the_same_parameters_and_no_fit(data):
    sir = PrivateSIR(epsilon=2.0, bounds=Bounds(-1, [1, 2, 3]), classes=["a"], random_state=3)
    copy = clone(sir)
    assert copy.get_params() == sir.get_params() and not hasattr(copy, "directions_")


def test_fitting_again_forgets_the_first_fit(data):
    x, y = data
    sir = PrivateSIR(bounds="search", method="descent", random_state=0)
    first = sir.fit(pd.DataFrame(x, columns=list("abc")), y).ledger_
    sir.fit(x[:, :2], y)
    assert sir.directions_.shape[1] == 2 and not hasattr(sir, "feature_names_in_")
    assert sir.ledger_ is not first and len(sir.ledger_) == len(first)


def test_a_budget_that_hardly_protects_anybody_is_said_by_public_numbers(data):
    loose = {"epsilon": 20.0, "delta": 0.01, "n_directions": 1, "bounds": Bounds(-4, 4)}
    with pytest.warns(PrivacyWarning) as caught:
        PrivateSIR(**loose).fit(*data)
    said = [str(warning.message) for warning in caught]
    assert len(said) == 2 and said[0].startswith("epsilon = 20") and said[1].startswith("delta = 0.01")
    with pytest.warns(PrivacyWarning) as caught:  # how many records there are is private
        PrivateSIR(**loose, relation="add-remove").fit(*data)
    assert [str(warning.message).partition(" ")[0] for warning in caught] == ["epsilon"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivateSIR(bounds=Bounds(-4, 4), n_directions=1).fit(*data)
