"""What is known of some columns, and what their types say, is never bought; the rest is, or is refused in time."""

import numpy as np
import pandas as pd
import pytest

from sfumato import (
    AccuracyWarning,
    Bounds,
    InputError,
    Ledger,
    PrivateCCA,
    PrivateLDA,
    PrivatePCA,
    PrivateSAVE,
    PrivateSIR,
    PrivateSparseSIR,
    subspace_distance,
)
from sfumato.model import load_model, save_model
from sfumato.privacy.budget import Budget

N = 6000
rng = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": rng.uniform(20, 90, N),
        "smokes": rng.random(N) < 0.2,
        "income": np.exp(rng.normal(10, 0.5, N)),
        "grade": rng.integers(1, 8, N),
        "empty": np.zeros(N),
    }
)
TRUTH = np.array([[1 / 20, 1.0, 0.0, 0.2, 0.0]])
Y = FRAME.to_numpy(float) @ TRUTH[0] + 0.3 * rng.normal(size=N)
KNOWN = {"age": (0, 120), "grade": range(1, 8)}


def spent(estimator):
    return [entry.query for entry in estimator.ledger_.entries if "each feature" in entry.purpose]


def test_known_columns_keep_their_bounds_and_the_others_are_found():
    sir = PrivateSIR(epsilon=3, n_directions=1, bounds=KNOWN, random_state=0).fit(FRAME, Y)
    assert sir.bounds_.lower[[0, 1, 3]].tolist() == [0, 0, 1] and sir.bounds_.upper[[0, 1, 3]].tolist() == [120, 1, 7]
    assert sir.bounds_.upper[2] > 2e4 and sir.unseen_features_.tolist() == ["empty"]
    assert subspace_distance(sir.directions_ * FRAME.std().to_numpy(), TRUTH * FRAME.std().to_numpy()) < 0.3
    assert "2 selected features" in spent(sir)[0] and "3 selected features" in spent(sir)[-1]
    assert sir.ledger_.entries and round(sum(entry.event.mu**2 for entry in sir.ledger_.entries), 9) > 0


def test_positions_say_the_same_as_names():
    by_name = PrivateSIR(epsilon=3, n_directions=1, bounds=KNOWN, random_state=0).fit(FRAME, Y)
    by_place = PrivateSIR(epsilon=3, n_directions=1, bounds={0: (0, 120), 3: range(1, 8)}, random_state=0).fit(FRAME, Y)
    np.testing.assert_array_equal(by_name.directions_, by_place.directions_)


def test_truth_values_are_never_bought():
    flags = rng.random((N, 4)) < 0.3
    sir = PrivateSIR(epsilon=1, random_state=0).fit(flags, flags @ np.arange(4.0) + rng.normal(size=N))
    assert spent(sir) == [] and sir.bounds_ == Bounds(np.zeros(4), np.ones(4))


@pytest.mark.parametrize(
    "estimator",
    [
        PrivateSIR(),
        PrivateSAVE(),
        PrivateLDA(classes=[0, 1]),
        PrivatePCA(1),
        PrivateSIR(bounds=KNOWN),
        PrivateSIR(bounds={"age": (0, 120), "income": "search"}),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_search_in_vain_is_refused_before_anything_is_spent(estimator):
    estimator.set_params(ledger=Ledger(Budget.approximate(1, 1e-6), "replace"))
    with pytest.raises(InputError, match=r"are too few to find those of . features within this budget; give bounds"):
        estimator.fit(FRAME[:200], Y[:200] > 5 if isinstance(estimator, PrivateLDA) else Y[:200])
    assert not estimator.ledger.entries


def test_whoever_insists_gets_a_search():
    insisting = ("search", {**KNOWN, "income": "search", "empty": "search"})
    for bounds in insisting:
        assert PrivateSIR(bounds=bounds, random_state=0).fit(FRAME[:200], Y[:200]).directions_.shape[1] == 5
    with pytest.warns(AccuracyWarning, match="features far from zero"):
        PrivateSIR(random_state=0).fit(FRAME[:2500], Y[:2500])


def test_the_plan_of_some_columns_is_told_before_their_names_are_known():
    told = [row[0] for row in PrivateSIR(bounds=KNOWN).explain(N, 5).rows()]
    fitted = PrivateSIR(bounds=KNOWN, random_state=0, method="descent").fit(FRAME.astype(float), Y)
    assert told == [entry.purpose for entry in fitted.ledger_.entries]


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="no column 'weight'"):
        PrivateSIR(bounds={"weight": (0, 1)}).fit(FRAME, Y)
    with pytest.raises(InputError, match="column 'age' is named, but the table has no column names"):
        PrivateSIR(bounds={"age": (0, 1)}).fit(FRAME.to_numpy(float), Y)


def test_pairs_and_sparse_fits_know_some_columns_too():
    first, second = FRAME[["age", "smokes"]], FRAME[["grade", "income"]]
    cca = PrivateCCA(1, epsilon=3, bounds={"age": (0, 120)}, y_bounds={"grade": range(1, 8)}, random_state=0)
    assert cca.fit(first, second).bounds_.upper[:3].tolist() == [120, 1, 7]
    sparse = PrivateSparseSIR(epsilon=3, bounds=KNOWN, random_state=0).fit(FRAME, Y)
    assert sparse.bounds_.upper[[0, 1, 3]].tolist() == [120, 1, 7]


def test_a_list_of_pairs_says_the_same_as_a_mapping_and_is_kept_in_the_model(tmp_path):
    x, y = FRAME[["age", "income"]].to_numpy(), FRAME["age"].to_numpy()
    mapping = {0: (0, 120), 1: (0, 1e6)}
    listed = [
        PrivateSIR(bounds=b, random_state=3).fit(x, y)
        for b in (mapping, list(mapping.values()), np.array(list(mapping.values())))
    ]
    assert all((one.directions_ == listed[0].directions_).all() for one in listed)
    save_model(listed[1], tmp_path / "model.json")
    assert load_model(tmp_path / "model.json").bounds == mapping
    with pytest.raises(InputError, match="bounds: there are 1 entries for 2 features"):
        PrivateSIR(bounds=[(0, 120)]).fit(x, y)
