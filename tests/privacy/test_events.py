"""What one event costs."""

import math
from dataclasses import FrozenInstanceError

import pytest

from sfumato.errors import InputError
from sfumato.privacy.events import Gaussian, Laplace, NoGuarantee, RandomisedResponse, Selection, rho


@pytest.mark.parametrize(
    ("event", "cost"),
    [
        (Gaussian(mu=0.2), 0.02),
        (Laplace(epsilon=0.1), 0.005),
        (RandomisedResponse(epsilon=2.0, k=9), 2.0),
        (Selection(epsilon=0.4, picks=5), 0.1),
        (Selection(epsilon=0.4, picks=0), 0.0),
        (Gaussian(mu=1e200), math.inf),
        (NoGuarantee("paper formula"), math.inf),
    ],
)
def test_each_event_has_its_zcdp_cost(event, cost):
    assert rho(event) == pytest.approx(cost, rel=1e-15)


def test_bounded_range_is_four_times_cheaper_than_pure():
    assert 4 * rho(Selection(epsilon=0.3, picks=1)) == pytest.approx(rho(Laplace(epsilon=0.3)), rel=1e-15)


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("kind", [Gaussian, Laplace, lambda e: Selection(e, 1), lambda e: RandomisedResponse(e, 2)])
def test_impossible_costs_cannot_be_booked(kind, value):
    with pytest.raises(InputError, match="finite number"):
        kind(value)


@pytest.mark.parametrize("picks", [-1, 1.5])
def test_picks_are_counted_in_whole_numbers(picks):
    with pytest.raises(InputError, match="picks"):
        Selection(0.1, picks)


def test_an_event_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        Gaussian(0.1).mu = 0.0
