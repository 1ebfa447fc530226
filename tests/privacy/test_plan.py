"""Plans cost what was asked for: never more, and hardly less."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import BudgetError, InputError
from sfumato.privacy.accounting import total_epsilon, total_rho
from sfumato.privacy.budget import Budget
from sfumato.privacy.events import Gaussian, Laplace, Selection, rho
from sfumato.privacy.plan import Line, Plan

ALL = ("gaussian", "laplace", "selection", "gaussian")
ONE, WIDE, ZCDP = Budget.approximate(1.0, 1e-6), Budget.approximate(6.0, 1e-9), Budget.zcdp(0.3)
MIXTURES = [
    (("gaussian", "selection"), ONE),
    (("laplace",), ONE),
    (("selection", "selection"), WIDE),
    (ALL, WIDE),
    (ALL, Budget.approximate(1.0, 1e-14)),  # beyond the reach of the numerical accountant
    (ALL, ZCDP),
    (("laplace",), ZCDP),
]


def plan_of(mechanisms, shares=None, picks=3):
    shares = shares or [1.0] * len(mechanisms)
    return Plan(
        tuple(
            Line(f"{i}", "why", share, "1", mechanism, picks)
            for i, (mechanism, share) in enumerate(zip(mechanisms, shares, strict=True))
        )
    )


def spent_over_asked(plan, budget):
    if budget.rho is not None:
        return total_rho(plan.events) / budget.rho
    return total_epsilon(plan.events, budget.delta) / budget.epsilon


@given(
    st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=20),
    st.floats(-2, 1.5).map(lambda t: 10.0**t),
    st.floats(-12, -2).map(lambda t: 10.0**t),
)
@settings(max_examples=60, deadline=None)
def test_gaussian_plans_cost_the_whole_budget_and_never_more(shares, epsilon, delta):
    plan = plan_of(["gaussian"] * len(shares), shares)
    for budget in (Budget.approximate(epsilon, delta), Budget.zcdp(epsilon)):
        calibrated = plan.calibrate(budget)
        assert 1 - 1e-6 <= spent_over_asked(calibrated, budget) <= 1.0
        assert budget.allows(calibrated.events)


@pytest.mark.parametrize(("mechanisms", "budget"), MIXTURES)
def test_mixtures_cost_the_whole_budget_and_never_more(mechanisms, budget):
    calibrated = plan_of(mechanisms).calibrate(budget)
    # 1e-12 is the tolerance with which a budget forgives the rounding of a sum; the numerical accountant rounds
    # losses up to a grid, so its total jumps by a few 1e-6 as the plan is scaled.
    assert 1 - 1e-5 <= spent_over_asked(calibrated, budget) <= 1 + 1e-12
    assert budget.allows(calibrated.events)


@pytest.mark.parametrize("mechanisms", [("gaussian",) * 3, ("gaussian", "laplace", "selection")])
def test_costs_are_divided_in_proportion_to_the_shares(mechanisms):
    lines = plan_of(mechanisms, [1.0, 2.0, 5.0]).calibrate(Budget.approximate(1.0, 1e-6)).lines
    assert [line.rho / lines[0].rho for line in lines] == pytest.approx([1.0, 2.0, 5.0])


@pytest.mark.parametrize(
    ("mechanism", "kind"), [("gaussian", Gaussian), ("laplace", Laplace), ("selection", Selection)]
)
def test_the_event_of_a_line_costs_its_rho(mechanism, kind):
    line = Line("a", "why", 1.0, "1", mechanism, picks=4, rho=0.02)
    assert isinstance(line.event, kind)
    assert rho(line.event) == pytest.approx(0.02, rel=1e-12)


def test_only_shares_relative_to_each_other_matter():
    budget = Budget.approximate(1.0, 1e-6)
    few = plan_of(["gaussian"] * 2, [1.0, 3.0]).calibrate(budget)
    many = plan_of(["gaussian"] * 2, [100.0, 300.0]).calibrate(budget)
    assert [line.rho for line in few.lines] == pytest.approx([line.rho for line in many.lines], rel=1e-12)


@pytest.mark.parametrize("budget", [Budget.approximate(1e-7, 1e-9), Budget.zcdp(1e-12)])
def test_a_budget_too_small_for_any_release_is_refused_before_the_run(budget):
    with pytest.raises(BudgetError, match="too small") as error:
        plan_of(["gaussian"]).calibrate(budget)
    assert "\n" not in str(error.value)


def test_noise_multiplier_of_a_single_release_is_the_published_one():
    (line,) = plan_of(["gaussian"]).calibrate(Budget.approximate(1.0, 1e-6)).lines
    assert 1 / line.event.mu == pytest.approx(4.2247, abs=5e-5)  # Balle and Wang's analytic calibration
    assert line.rho == pytest.approx(line.event.mu**2 / 2)


@pytest.mark.parametrize("shares", [(), (1.0, 0.0), (1.0, -0.5), (float("nan"),), (1e308, 1e308)])
def test_a_plan_without_positive_shares_is_refused(shares):
    plan = Plan(tuple(Line(str(i), "odd", share, "1") for i, share in enumerate(shares)))
    with pytest.raises(InputError, match="share that is positive"):
        plan.calibrate(Budget.zcdp(1.0))
