"""Whole fits, attacked by someone who may change all rows of one person. The long version is benchmarks/persons.py.

Replays of such neighbours are in test_replay.py.
"""

import numpy as np
import pytest

from sfumato import Bounds, Budget, PrivateSIR
from sfumato.audit import fits
from sfumato.audit.fits import Case, audit_person, grouped, overheard, realised, worst_person
from sfumato.privacy.noise import SeededNoise
from sfumato.statistics.parts import PerPerson

RELATIONS = ("replace", "add-remove")
DELTA = 1e-6
SELECTING = "DPSIni, validated"
IN_PARTS = "DPSIR"


def cases(epsilon, delta, relation):
    """Every fit that claims a guarantee, those of the papers too."""
    return fits.cases(epsilon, delta, relation)


def moved(case, rows):
    """mu of a fit on a bad pair of persons, and mu of a Gaussian release of the zCDP cost it states; of two draws of
    the noise, the worse. By chance a fit of so few records clips both persons to much the same.
    """
    case.estimator.set_params(rows_per_person=rows)
    known = grouped(case)
    d, d_prime = worst_person(known, rows, seed=1, tries=60)
    heard = [known.listened(d, SeededNoise(seed)) for seed in (0, 1)]
    both = [
        (realised(transcript, d.counted(rows), d_prime.counted(rows)), np.sqrt(2.0 * fitted.ledger_.rho))
        for fitted, transcript in heard
    ]
    return max(both, key=lambda pair: pair[0] / pair[1])


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", list(cases(12.0, DELTA, "replace")))
def test_no_fit_moves_further_for_a_person_than_it_says(name, relation):
    found, spent = moved(cases(12.0, DELTA, relation)[name], rows=2)
    assert 0.15 * spent < found <= spent * (1 + 1e-9)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["PrivateSIR descent", SELECTING, IN_PARTS])
@pytest.mark.parametrize("rows", [1, 10])
def test_one_row_and_ten_rows_move_no_further_either(name, relation, rows):
    found, spent = moved(cases(12.0, DELTA, relation)[name], rows)
    assert 0.15 * spent < found <= spent * (1 + 1e-9)


@pytest.mark.parametrize("rows", [1, 2, 10])
def test_an_attacker_with_all_rows_of_a_person_proves_no_more_than_was_claimed(rows):
    sir = PrivateSIR(60.0, DELTA, 1, Bounds(-1, 1), "one-shot", rows_per_person=rows, relation="add-remove")
    found = audit_person(Case(sir, n_features=2, n_records=20), runs=120)
    assert found.whole.passed and found.shown.passed
    assert found.whole.audited_lower > Budget.approximate(3.0, DELTA).mu()  # had it claimed epsilon = 3


def test_protecting_records_only_is_caught_by_an_attacker_with_ten_rows():
    claimed = PrivateSIR(1.0, DELTA, 1, Bounds(-1, 1), "one-shot", rows_per_person=10, relation="add-remove")
    case = grouped(Case(claimed, n_features=2, n_records=20))
    d, d_prime = worst_person(case, 10, seed=1, tries=30)
    weaker = Case(PrivateSIR(1.0, DELTA, 1, Bounds(-1, 1), "one-shot", relation="add-remove"), n_features=2)
    fitted, transcript = weaker.listened(d.counted(10), SeededNoise(0))
    assert realised(transcript, d.counted(10), d_prime.counted(10)) > 5 * np.sqrt(2.0 * fitted.ledger_.rho)


def test_a_transcript_has_the_bounds_of_a_person():
    x, y = [[0.1, 0.2], [0.3, 0.1], [0.5, 0.4]], [1.0, 2.0, 3.0]
    with overheard() as transcript:
        PrivateSIR(bounds=Bounds(-1, 1), rows_per_person=3).fit(x, y, groups=[1, 1, 2])
    assert transcript and all(isinstance(one.query, PerPerson) and one.query.rows == 3 for one in transcript)
