"""The ledger in memory: an account that counts every release and gives away no record."""

import pickle
import threading

import pytest
from sklearn.base import clone

from sfumato import Budget, BudgetError, Ledger, PrivateSIR
from sfumato.privacy.events import Gaussian, NoGuarantee
from sfumato.privacy.ledger import Entry
from sfumato.privacy.plan import Line, Plan

CAP = Budget.approximate(1.0, 1e-6)


def entry(event, relation="replace"):
    return Entry("purpose", "query", event, 1.0, 2.0, 0.5, relation)


def plan(epsilon):
    return Plan((Line("whole", "all", 1.0, "1"),)).calibrate(Budget.approximate(epsilon, 1e-6))


def test_an_unspent_ledger_has_room_for_its_cap_and_no_more():
    ledger = Ledger(CAP, "replace")
    ledger.reserve(plan(1.0))
    with pytest.raises(BudgetError) as error:
        ledger.reserve(plan(1.001))
    assert "\n" not in str(error.value) and len(ledger) == 0


def test_entries_are_kept_in_order_stamped_and_cannot_be_changed():
    ledger = Ledger(CAP, "replace")
    for mu in (0.1, 0.05):
        ledger.record(entry(Gaussian(mu)))
    assert [item.event.mu for item in ledger] == [0.1, 0.05]
    assert all(item.at.endswith("+00:00") for item in ledger)
    assert isinstance(ledger.entries, tuple)
    with pytest.raises(AttributeError):
        ledger.entries[0].event = Gaussian(0.0)


def test_what_was_recorded_is_no_longer_free():
    ledger = Ledger(CAP, "replace")
    for event in plan(1.0).events:
        ledger.record(entry(event))
    assert ledger.total() == pytest.approx(1.0, abs=1e-6) and ledger.total() <= 1.0
    with pytest.raises(BudgetError):
        ledger.reserve(plan(0.01))


def test_releases_of_several_threads_are_all_counted():
    ledger = Ledger(CAP, "replace")
    work = [threading.Thread(target=lambda: [ledger.record(entry(Gaussian(1e-3))) for _ in range(500)]) for _ in "abcd"]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(ledger) == 2000


def test_a_rehearsal_has_no_guarantee_and_says_so():
    ledger = Ledger(CAP, "replace", rehearsal=True)
    ledger.record(entry(Gaussian(0.1)))
    assert ledger.total() == float("inf") and ledger.spent() < 1.0
    assert ledger.guarantee.startswith("No privacy guarantee")


def test_a_release_without_guarantee_voids_the_whole():
    ledger = Ledger(CAP, "replace")
    ledger.record(entry(Gaussian(0.1)))
    ledger.record(entry(NoGuarantee("printed noise is below the sensitivity.")))
    assert ledger.total() == float("inf")
    assert ledger.guarantee == "No privacy guarantee: printed noise is below the sensitivity."


@pytest.mark.parametrize(("relation", "words"), [("replace", "replacing"), ("add-remove", "adding or removing")])
def test_the_guarantee_names_budget_and_relation(relation, words):
    sentence = Ledger(CAP, relation).guarantee
    assert words in sentence and "epsilon = 1" in sentence and "delta = 1e-06" in sentence


def test_a_zcdp_ledger_needs_a_delta_to_speak_of_epsilon():
    ledger = Ledger(Budget.zcdp(0.1), "replace")
    with pytest.raises(BudgetError, match="delta"):
        ledger.total()
    assert ledger.total(1e-6) == 0.0 and ledger.rho == 0.0


def test_a_cloned_estimator_spends_from_the_same_account():
    ledger = Ledger(CAP, "replace")
    assert clone(PrivateSIR(ledger=ledger)).ledger is ledger


def test_a_pickled_ledger_keeps_its_entries():
    ledger = Ledger(CAP, "replace")
    ledger.record(entry(Gaussian(0.1)))
    assert pickle.loads(pickle.dumps(ledger)).entries == ledger.entries
