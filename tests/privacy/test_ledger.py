"""The ledger in memory: an account that counts every release and gives away no record."""

import contextlib
import os
import pickle
import sys
import threading

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone

from sfumato import Bounds, Budget, BudgetError, Ledger, PrivateSIR
from sfumato.privacy.curator import Curator
from sfumato.privacy.events import Gaussian, NoGuarantee
from sfumato.privacy.ledger import Entry
from sfumato.privacy.noise import SecureNoise
from sfumato.privacy.plan import Line, Plan

CAP = Budget.approximate(1.0, 1e-6)


def entry(event, relation="replace"):
    return Entry("purpose", "query", event, 1.0, 2.0, 0.5, relation)


def plan(epsilon):
    return Plan((Line("whole", "all", 1.0, "1"),)).calibrate(Budget.approximate(epsilon, 1e-6))


def test_an_unspent_ledger_has_room_for_its_cap_and_no_more():
    ledger = Ledger(CAP, "replace")
    with pytest.raises(BudgetError) as error:
        ledger.reserve(plan(1.001))
    assert "\n" not in str(error.value) and len(ledger) == 0
    ledger.reserve(plan(1.0))
    with pytest.raises(BudgetError, match="nothing is left"):
        ledger.reserve(plan(0.01))
    assert ledger.remaining() is None


def test_a_release_that_was_set_aside_is_not_counted_twice_and_any_other_must_fit():
    ledger, one = Ledger(CAP, "replace"), plan(0.9)
    ledger.reserve(one)
    ledger.record(entry(one.events[0]))
    with pytest.raises(BudgetError, match="would pass"):
        ledger.record(entry(one.events[0]))
    assert len(ledger) == 1 and ledger.total() == pytest.approx(0.9, abs=1e-6)


def test_what_an_abandoned_run_set_aside_is_free_again():
    ledger = Ledger(CAP, "replace")
    door = Curator(None, plan(1.0), ledger, SecureNoise())
    assert ledger.remaining() is None
    del door
    assert ledger.remaining() == CAP


def test_four_threads_that_race_for_a_budget_never_pass_it_and_never_lie():
    """Room for one of four; the accountant releases the interpreter's lock often enough for them to interleave."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(100):
            ledger, admitted = Ledger(Budget.approximate(1.2, 1e-6), "replace"), []
            threads = [threading.Thread(target=_run, args=(ledger, plan(1.0), admitted)) for _ in range(4)]
            [thread.start() for thread in threads]
            [thread.join() for thread in threads]
            assert len(admitted) == 1 and ledger.total() <= 1.2 and "epsilon = 1.2" in ledger.guarantee
    finally:
        sys.setswitchinterval(before)


def _run(ledger, one, admitted):
    with contextlib.suppress(BudgetError):
        ledger.reserve(one)
        for event in one.events:
            ledger.record(entry(event))
        admitted.append(one)


def test_fits_in_threads_that_share_a_ledger_keep_its_budget():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, 3))
    ledger = Ledger(Budget.approximate(1.2, 1e-6), "replace")
    sir = PrivateSIR(epsilon=1.0, bounds=Bounds(-1, 1), method="descent", ledger=ledger)
    done = Parallel(n_jobs=4, backend="threading")(delayed(_fitted)(clone(sir), x, x[:, 0]) for _ in range(4))
    assert sum(done) == 1 and ledger.total() <= 1.0 + 1e-9


def test_a_copy_in_another_process_refuses_to_spend_with_the_remedy():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, 3))
    ledger = Ledger(Budget.approximate(1.2, 1e-6), "replace")
    sir = PrivateSIR(epsilon=1.0, bounds=Bounds(-1, 1), method="descent", ledger=ledger)
    with pytest.raises(BudgetError, match="share a ledger file"):
        Parallel(n_jobs=2)(delayed(clone(sir).fit)(x, x[:, 0]) for _ in range(2))
    for attempt in ("reserve", "admit"):
        with pytest.raises(BudgetError, match="share a ledger file"):
            getattr(pickle.loads(pickle.dumps(ledger)), attempt)(plan(0.1))
    assert len(ledger) == 0 and ledger.remaining() == ledger.budget


def test_a_forked_copy_refuses_to_spend():
    ledger = Ledger(CAP, "replace")
    child = os.fork()
    if child == 0:
        try:
            ledger.reserve(plan(0.1))
        except BudgetError:
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def _fitted(sir, x, y):
    try:
        sir.fit(x, y)
    except BudgetError:
        return False
    return True


def test_entries_beyond_the_budget_are_told_and_not_covered():
    """No door writes them; a ledger restored from a file may hold anything."""
    ledger = Ledger.restore(CAP, "replace", False, [entry(Gaussian(1.0)), entry(Gaussian(1.0))])
    assert ledger.guarantee.startswith("No guarantee of (epsilon = 1, delta = 1e-06): the 2 releases cost epsilon = ")


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
    work = [threading.Thread(target=lambda: [ledger.record(entry(Gaussian(1e-3))) for _ in range(100)]) for _ in "abcd"]
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    assert len(ledger) == 400


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
