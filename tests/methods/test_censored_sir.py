"""Times that are cut short: what x does to events, whatever it does to the censoring."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Bounds, InputError, PrivateCensoredSIR, PrivateSIR, scan, subspace_distance
from sfumato.methods.censored_sir import CensoredTask
from sfumato.privacy.asking import drive
from sfumato.records import Response
from sfumato.statistics.parts import Cells
from sfumato.steps.cells import double_slices, event_functions

N, P, BOX = 20_000, 4, Bounds(-5.0, 5.0)
PLACES = Cells.cut([np.arange(23.0), np.array([0.5])]).places


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(3).normal(size=(N, P))


@pytest.fixture(scope="module")
def y(x):
    """The event depends on the second coordinate of x, and being cut short, half of the times, on the last."""
    noise = 0.5 * np.random.default_rng(4).normal(size=(N, 2))
    event, end = np.exp(x[:, 1] + noise[:, 0]), np.exp(1.5 * x[:, 3] + noise[:, 1])
    return np.column_stack([np.minimum(event, end), event <= end])


def test_events_are_told_from_what_cuts_times_short(x, y):
    fitted = PrivateCensoredSIR(n_directions=1, bounds=BOX).fit(x, y)
    assert fitted.directions_[0, 1] > 0.98  # times get longer along it
    everyone = PrivateSIR(n_directions=1, bounds=BOX).fit(x, y[:, 0])
    assert abs(everyone.directions_[0, 3]) > 0.5


def test_double_slicing_spans_what_explains_either(x, y):
    fitted = PrivateCensoredSIR(n_directions=2, bounds=BOX, method="double-slicing").fit(x, y)
    assert subspace_distance(fitted.directions_, np.eye(P)[[1, 3]]) < 0.1


def double_slicing(x, y, slices=12):
    """The estimator of Li, Wang and Chen by hand: SIR with slices of the time within each status."""
    values, vectors = np.linalg.eigh(np.cov(x.T))
    root = (vectors / np.sqrt(values)) @ vectors.T
    z, kernel = (x - x.mean(axis=0)) @ root, np.zeros((x.shape[1],) * 2)
    for status in (0, 1):
        rows = np.flatnonzero(y[:, 1] == status)
        for members in np.array_split(rows[np.argsort(y[rows, 0])], slices):
            kernel += len(members) / len(x) * np.outer(z[members].mean(axis=0), z[members].mean(axis=0))
    return (root @ np.linalg.eigh(kernel)[1][:, ::-1]).T


def test_without_noise_it_is_double_slicing(x, y, silent):
    task = CensoredTask(P, N, Response(), 2, BOX, looks="double-slicing")
    found = drive(task.run(), silent(np.hstack([x, y]), np.zeros(N), task.plan().lines))
    # The same functions of time and status, smoothed; each is off the truth by chance, 0.02.
    assert subspace_distance(found.directions, double_slicing(x, y)[:2]) < 0.06


def test_the_functions_of_events_have_mean_zero_at_every_rate_of_censoring():
    """Exponential times with one rate for all and another rate of censoring for each group: martingales have mean zero
    in each of the groups, up to the width of a piece; the status and the time have not."""
    edges, rates = -np.log1p(-np.arange(1, 24) / 24.0) / 2.0, np.array([0.2, 1.0, 4.0])
    ends = np.concatenate([[0.0], edges, [np.inf]])
    shares = []
    for rate in rates:
        total = 1.0 + rate
        observed = np.exp(-total * ends[:-1]) - np.exp(-total * ends[1:])
        shares.append(np.stack([observed * rate / total, observed / total], axis=1).ravel())
    mean = np.mean(shares, axis=0)
    spread = [np.abs(np.array(shares) @ table(PLACES, mean)).max() for table in (event_functions, double_slices)]
    assert spread[0] < 0.02 and spread[1] > 0.3


def test_events_that_are_rare_or_none_make_no_function_long():
    for part in (0.0, 1e-4, 0.5, 1.0):
        shares = np.where(PLACES[:, 1] == 1, part, 1.0 - part) / 24.0
        for table in (event_functions(PLACES, shares), double_slices(PLACES, shares)):
            assert np.isfinite(table).all() and np.abs(table).max() < 20.0


@pytest.mark.parametrize("status", [0.0, 1.0])
def test_one_status_alone_has_an_answer_all_the_same(x, status):
    for method in ("events", "double-slicing"):
        y = np.column_stack([np.exp(x[:2_000, 0]), np.full(2_000, status)])
        fitted = PrivateCensoredSIR(n_directions=1, bounds=BOX, method=method).fit(x[:2_000], y)
        assert np.isfinite(fitted.directions_).all()


def test_without_censoring_it_finds_what_sir_finds(x):
    y = np.column_stack([np.exp(x[:, 2] + 0.5 * np.random.default_rng(5).normal(size=N)), np.ones(N)])
    assert PrivateCensoredSIR(n_directions=1, bounds=BOX).fit(x, y).directions_[0, 2] > 0.99


def test_survival_arrays_are_read_whichever_field_is_first(x, y):
    table = np.empty(N, dtype=[("died", bool), ("time", float)])
    table["died"], table["time"] = y[:, 1], y[:, 0]
    fits = [PrivateCensoredSIR(n_directions=1, bounds=BOX, random_state=1) for _ in range(2)]
    with pytest.warns(match="random_state is set"):
        found = [fit.fit(x, given).directions_ for fit, given in zip(fits, (y, table), strict=True)]
    np.testing.assert_array_equal(*found)


def test_a_mistake_is_one_sentence_before_anything_is_spent(x):
    with pytest.raises(InputError, match="y must have two columns, the time and whether the event was seen"):
        PrivateCensoredSIR(bounds=BOX).fit(x[:50], np.ones(50))
    with pytest.raises(InputError, match="method must be one of 'auto', 'events', 'double-slicing'"):
        PrivateCensoredSIR(bounds=BOX, method="weights").fit(x[:50], np.ones((50, 2)))


@pytest.mark.judged
def test_a_forecast_is_met():
    sir, rng = PrivateCensoredSIR(n_directions=1, bounds=BOX), np.random.default_rng(6)
    losses = []
    for z in rng.normal(size=(12, 5_000, P)):
        time, end = np.sqrt(0.5) * (z[:, 0] + rng.normal(size=5_000)), rng.normal(size=5_000)
        y = np.column_stack([np.exp(np.minimum(time, end)), time <= end])
        losses.append(subspace_distance(sir.fit(z, y).directions_, np.eye(1, P)))
    assert sir.explain(5_000, P).forecast(0.5).loss == pytest.approx(np.mean(losses), rel=0.5)


@pytest.mark.parametrize("functions", [event_functions, double_slices])
def test_pieces_without_records_leave_functions_that_are_numbers(functions):
    rng = np.random.default_rng(0)
    places = np.stack(np.unravel_index(np.arange(48), (24, 2)), axis=1)
    for _ in range(200):
        shares = rng.exponential(size=48) * (rng.random(48) < rng.random())
        shares[rng.integers(48)] += 1e-3
        table = functions(places, shares / shares.sum())
        assert np.isfinite(table).all()


@pytest.mark.filterwarnings("ignore:random_state")
def test_truth_values_of_time_and_status_are_no_features():
    rng = np.random.default_rng(0)
    known = {"n_directions": 1, "bounds": {"age": (0, 120)}, "random_state": 0}
    frame = pd.DataFrame({"age": rng.uniform(20, 90, 20_000), "rare": rng.random(20_000) < 0.001})
    y = pd.DataFrame({"time": rng.exponential(size=20_000), "died": rng.random(20_000) < 0.5})
    assert PrivateCensoredSIR(**known).fit(frame, y).rare_features_ == ("rare",)
    table = pa.table({**{name: frame[name] for name in frame}, **{name: y[name] for name in y}})
    assert PrivateCensoredSIR(**known).fit(scan(table, second=["time", "died"])).rare_features_ == ("rare",)
