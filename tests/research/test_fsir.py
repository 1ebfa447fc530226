"""FSIR as its paper prints it (flagged), and mended."""

import math

import numpy as np
import pytest

from sfumato import SIR, Bounds, Budget, PrivacyWarning, subspace_distance
from sfumato.privacy.asking import drive
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import SecureNoise, SeededNoise
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.research.fsir import ccmd, fsir_iid, fsir_paper, fsir_shaped, plan_shaped
from sfumato.settings.central import Central
from sfumato.simulate import he
from sfumato.sources import ArraySource
from sfumato.steps.one_shot import OneShot
from sfumato.steps.ranks import Ranking


def printed(mechanism, epsilon=1.0, sites=5, n=1_000):
    sample = he("V", n=n * sites, random_state=0)
    slices = np.searchsorted(np.quantile(sample.y, np.arange(1, 6) / 6), sample.y, side="right")
    parts = list(zip(np.split(sample.x, sites), np.split(slices, sites), strict=True))
    with pytest.warns(PrivacyWarning, match="no privacy"):
        found, ledger = fsir_paper(parts, 2, 6, epsilon, 0.03, mechanism, rng=np.random.default_rng(0))
    return found, ledger, sample


@pytest.mark.parametrize("mechanism", ["iid", "mvg"])
def test_the_printed_algorithms_are_flagged_and_claim_nothing(mechanism):
    _, ledger, _ = printed(mechanism)
    assert math.isinf(ledger.total()) and ledger.guarantee.startswith("No privacy guarantee")


@pytest.mark.parametrize("mechanism", ["iid", "mvg"])
def test_the_printed_algorithms_find_the_subspace_once_noise_is_negligible(mechanism):
    found, _, sample = printed(mechanism, epsilon=1e6)
    plain = SIR(n_directions=2, n_slices=6).fit(sample.x, sample.y).directions_
    assert subspace_distance(found, sample.directions) < 1.5 * subspace_distance(plain, sample.directions) + 0.05


def test_the_printed_noise_depends_on_the_records_so_that_coupling_gives_it_away():
    """Same random numbers, one record replaced: additive noise would cancel, here it does not (erratum 5)."""

    def means(x):
        from sfumato.research.fsir import _means

        return _means(x, np.arange(200) % 4, 4, 1.0, 0.03, "mvg", 3.0, 50, False, np.random.default_rng(1))

    x = np.random.default_rng(0).normal(size=(200, 5))
    other = x.copy()
    other[0] = 3.0
    moved = np.linalg.norm(means(other) - means(x))
    assert moved > 2 * 2 * 3.0 * math.sqrt(5) / 200  # more than any sum's sensitivity allows


def test_mended_fsir_costs_its_budget_and_finds_the_subspace():
    sample, budget = he("V", n=40_000, random_state=0), Budget.approximate(2.0, 1e-5)
    plan = Plan((*Ranking(Response(), 0.1).lines, *OneShot(0.9).lines)).calibrate(budget)
    ledger = Ledger(budget, "replace")
    curator = Curator(Central(ArraySource(sample.x, sample.y, Response())), plan, ledger, SecureNoise())
    grid = Bounds(-6, 6).grid(10)
    found = drive(fsir_iid(grid, drive(Ranking(Response(), 0.1).run(), curator), 40_000, 6.0, 6, 2), curator)
    assert subspace_distance(found, sample.directions) < 0.2
    assert ledger.total() == pytest.approx(2.0, rel=1e-6)


def test_shaped_noise_holds_its_budget_and_finds_the_subspace():
    sample, budget = he("V", n=40_000, random_state=0), Budget.approximate(2.0, 1e-5)
    plan = Plan((*Ranking(Response(), 0.1).lines, *plan_shaped(0.9))).calibrate(budget)
    ledger = Ledger(budget, "replace")
    curator = Curator(Central(ArraySource(sample.x, sample.y, Response())), plan, ledger, SecureNoise())
    found = drive(
        fsir_shaped(Bounds(-6, 6).grid(10), drive(Ranking(Response(), 0.1).run(), curator), 40_000, 6.0, 6, 2), curator
    )
    assert subspace_distance(found, sample.directions) < 0.25
    assert ledger.total() == pytest.approx(2.0, rel=1e-6)


def test_shaped_noise_follows_from_the_first_release_alone():
    """Replayed on a neighbour with the same noise and the first release fixed, the second moves by its bound at most.

    This is what the printed mechanism fails: there the noise itself moves with the record.
    """
    sample, neighbour = he("V", n=400, random_state=0), he("V", n=400, random_state=0)
    neighbour.x[0] = 5.0
    first, second = [], []

    class Replayed:
        def __init__(self, door):
            self.door = door

        def answer(self, query, name):
            released = self.door.answer(query, name)
            if name == "slices":
                first.append(released)
                return first[0]
            if name == "shaped slices":
                second.append((released, query))
            return released

    for records in (sample, neighbour):
        plan = Plan((*Ranking(Response(), 0.1).lines, *plan_shaped(0.9))).calibrate(Budget.approximate(1.0, 1e-5))
        source = Central(ArraySource(records.x, sample.y, Response()))
        ledger = Ledger(Budget.approximate(1.0, 1e-5), "replace", rehearsal=True)
        curator = Replayed(Curator(source, plan, ledger, SeededNoise(3)))
        drive(
            fsir_shaped(Bounds(-6, 6).grid(10), drive(Ranking(Response(), 0.1).run(), curator), 400, 6.0, 6, 2), curator
        )
    (one, query), (other, same) = second
    np.testing.assert_array_equal(query.whitening.matrix, same.whitening.matrix)
    moved = np.linalg.norm((other.value - one.value) / query.grid * query.weights)
    assert 0.0 < moved <= query.diameter * (1 + 1e-9)


def test_the_printed_filter_is_flagged_and_one_record_decides_what_it_names():
    x, slice_of = np.zeros((10, 3)), np.arange(10) % 2
    with pytest.warns(PrivacyWarning, match="no privacy"):
        before = ccmd([(x, slice_of)], 2, 0.3)
    x[0, 1] = 5.0
    with pytest.warns(PrivacyWarning, match="no privacy"):
        after = ccmd([(x, slice_of)], 2, 0.3)
    assert before.size == 0 and after.tolist() == [1]
