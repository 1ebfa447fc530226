"""The one door: a line is answered once, and is in the ledger before anything can be seen."""

import numpy as np
import pytest

from sfumato.errors import BudgetError
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.events import Gaussian, Laplace, Selection
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import Noise, SeededNoise
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Records, Response
from sfumato.settings.central import Central
from sfumato.sources import ArraySource
from sfumato.statistics.histograms import Bins, OctaveHistograms, ResponseHistogram

BUDGET = Budget.zcdp(0.05)
LINES = (
    Line("counts", "count", 1.0, "sqrt(2) / 1"),
    Line("again", "count again", 1.0, "sqrt(2) / 1"),
    Line("laplace", "count gently", 1.0, "2 / 1", "laplace"),
    Line("best", "choose", 1.0, "1 / 1", "selection", picks=2),
)
QUERY = ResponseHistogram(Bins(np.array([0.0, 1.0])))
RECORDS = Records(np.zeros((9, 2)), np.array([-1.0, -1.0, 0.5, 0.5, 0.5, 0.5, 3.0, 3.0, 3.0]))


class Broken:
    """A setting that fails, as a disk does."""

    def sum(self, query):
        raise OSError("disk gone")


class Dry(Noise):
    """A source of randomness that fails."""

    def words(self, count):
        raise OSError("no entropy")


def door(setting=None, relation="replace", noise=None, lines=LINES, budget=BUDGET):
    ledger = Ledger(budget, relation, rehearsal=True)
    setting = setting or Central(ArraySource(RECORDS.x, RECORDS.y, Response()))
    return Curator(setting, Plan(lines).calibrate(budget), ledger, noise or SeededNoise(0)), ledger


def ask(curator, name):
    return curator.select(QUERY, name) if name == "best" else curator.answer(QUERY, name)


@pytest.mark.parametrize("name", [line.name for line in LINES])
def test_a_line_is_answered_once(name):
    curator, ledger = door()
    ask(curator, name)
    with pytest.raises(RuntimeError, match=name):
        ask(curator, name)
    assert len(ledger) == 1


def test_a_line_that_was_not_planned_is_refused_and_not_charged():
    curator, ledger = door()
    with pytest.raises(RuntimeError, match="surprise"):
        curator.answer(QUERY, "surprise")
    assert len(ledger) == 0


@pytest.mark.parametrize(("name", "way"), [("best", "answer"), ("counts", "select"), ("laplace", "select")])
def test_a_line_is_answered_only_by_its_own_mechanism(name, way):
    curator, ledger = door()
    with pytest.raises(RuntimeError, match=name):
        getattr(curator, way)(QUERY, name)
    assert len(ledger) == 0


@pytest.mark.parametrize("name", [line.name for line in LINES])
def test_the_ledger_is_written_before_the_records_are_asked(name):
    curator, ledger = door(setting=Broken())
    with pytest.raises(OSError, match="disk gone"):
        ask(curator, name)
    assert [entry.purpose for entry in ledger] == [line.purpose for line in LINES if line.name == name]


@pytest.mark.parametrize("name", [line.name for line in LINES])
def test_the_ledger_is_written_before_noise_is_drawn(name):
    curator, ledger = door(noise=Dry())
    with pytest.raises(OSError, match="no entropy"):
        ask(curator, name)
    assert len(ledger) == 1


def test_a_query_that_allows_no_laplace_noise_is_refused_before_the_records_are_asked():
    curator, ledger = door(setting=Broken())
    with pytest.raises(NotImplementedError):
        curator.answer(OctaveHistograms(2), "laplace")
    assert len(ledger) == 0


def test_a_plan_beyond_the_cap_is_refused_before_the_first_question():
    ledger = Ledger(Budget.zcdp(0.049), "replace", rehearsal=True)
    with pytest.raises(BudgetError):
        Curator(Broken(), Plan(LINES).calibrate(BUDGET), ledger, Dry())
    assert len(ledger) == 0


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_the_ledger_says_what_was_done(relation):
    curator, ledger = door(relation=relation)
    counts = curator.answer(QUERY, "counts")
    gentle = curator.answer(QUERY, "laplace")
    curator.select(QUERY, "best")
    first, second, third = ledger.entries
    assert [type(entry.event) for entry in ledger] == [Gaussian, Laplace, Selection]
    assert first.sensitivity == pytest.approx(QUERY.sensitivity(relation))
    assert second.sensitivity == QUERY.l1_sensitivity(relation)
    assert third.sensitivity == QUERY.spread(relation) / 2
    assert first.noise_std == pytest.approx(counts.noise_std.max(), rel=1e-5)
    assert second.noise_std == pytest.approx(gentle.noise_std.max(), rel=1e-5)
    assert first.event.mu == pytest.approx(first.sensitivity / first.noise_std)
    assert all(entry.relation == relation and entry.query == QUERY.describe and entry.at for entry in ledger)


def test_a_selection_finds_the_largest_bins_when_the_budget_is_large():
    curator, _ = door(budget=Budget.zcdp(1e4))
    assert list(curator.select(QUERY, "best")) == [1, 2]


def test_an_answer_is_the_sum_plus_noise_of_the_declared_size():
    curator, _ = door()
    release = curator.answer(QUERY, "counts")
    assert (np.abs(release.value - [2, 4, 3]) < 6 * release.noise_std).all()  # 6 sigma: one seed in 10**8
    assert (release.value != [2, 4, 3]).all()
