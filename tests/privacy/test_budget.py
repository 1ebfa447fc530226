"""What the user may ask for, and what fits into it."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetError
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Gaussian, Laplace, NoGuarantee, Selection

BUDGETS = [
    Budget.approximate(1, 1e-6),
    Budget.approximate(0.01, 1e-9),
    Budget.approximate(8, 1e-5),
    Budget.zcdp(0.5),
]


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, True, "1", np.bool_(True), 1j])
def test_epsilon_and_rho_must_be_positive_numbers(value):
    with pytest.raises(BudgetError, match="epsilon must be a positive number, got epsilon="):
        Budget.approximate(value, 1e-6)
    with pytest.raises(BudgetError, match="rho must be a positive number, got rho="):
        Budget.zcdp(value)


@pytest.mark.parametrize("value", [None, 0, 1, 1.5, -1e-6, math.nan, False, "1e-6"])
def test_delta_must_lie_between_zero_and_one(value):
    with pytest.raises(BudgetError, match="delta must be a positive number below 1, got delta="):
        Budget.approximate(1.0, value)


def test_the_message_names_what_was_given_and_the_remedy():
    with pytest.raises(BudgetError) as caught:
        Budget.approximate(0, 1e-6)
    assert str(caught.value) == "epsilon must be a positive number, got epsilon=0; choose for instance epsilon=1."


@pytest.mark.parametrize("given", [{}, {"delta": 1e-6}, {"epsilon": 1.0, "delta": 1e-6, "rho": 0.5}])
def test_exactly_one_of_epsilon_and_rho_is_given(given):
    with pytest.raises(BudgetError, match="epsilon and rho"):
        Budget(**given)


def test_a_delta_beside_rho_is_refused():
    with pytest.raises(BudgetError, match="delta"):
        Budget(delta=1e-6, rho=0.5)


def test_numbers_of_numpy_are_numbers():
    assert Budget.approximate(np.float32(1), np.float64(1e-6)) == Budget.approximate(1, 1e-6)
    assert type(Budget.zcdp(np.int64(2)).rho) is float


def test_a_budget_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        BUDGETS[0].epsilon = 100.0


@pytest.mark.parametrize("budget", BUDGETS)
@given(shares=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=40))
@settings(max_examples=25, deadline=None)
def test_a_plan_scaled_to_the_budget_is_allowed_and_a_millionth_more_is_not(budget, shares):
    unit = budget.mu() / math.sqrt(sum(share * share for share in shares))
    assert budget.allows([Gaussian(share * unit) for share in shares])
    assert not budget.allows([Gaussian(share * unit * (1 + 1e-6)) for share in shares])


@pytest.mark.parametrize("budget", BUDGETS)
def test_nothing_is_always_allowed_and_no_guarantee_never(budget):
    assert budget.allows([])
    assert not budget.allows([NoGuarantee("printed formula")])


def test_mixed_mechanisms_are_weighed_together():
    events = [Gaussian(0.2), Laplace(0.05), Selection(0.01, 20)]
    assert Budget.approximate(1.2, 1e-6).allows(events)
    assert not Budget.approximate(0.85, 1e-6).allows(events)


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        (Budget.approximate(1, 1e-6), "(epsilon = 1, delta = 1e-06)"),
        (Budget.approximate(0.25, 1e-5), "(epsilon = 0.25, delta = 1e-05)"),
        (Budget.zcdp(0.5), "rho = 0.5 zCDP"),
    ],
)
def test_a_budget_describes_itself(budget, words):
    assert budget.describe() == words
