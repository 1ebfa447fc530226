"""Disjoint parts of the records are asked one after another for the price of one release."""

import numpy as np
import pytest

from sfumato.bounds import Bounds
from sfumato.privacy.accounting import total_epsilon
from sfumato.privacy.budget import Budget
from sfumato.privacy.curator import Curator
from sfumato.privacy.ledger import Ledger
from sfumato.privacy.noise import SeededNoise
from sfumato.privacy.plan import Line, Plan
from sfumato.records import Records, Response
from sfumato.settings.central import Central
from sfumato.sources import ArraySource
from sfumato.statistics.histograms import Bins, ResponseHistogram
from sfumato.statistics.moments import Moments
from sfumato.statistics.parts import Part, part_of

QUERY = ResponseHistogram(Bins(np.array([0.0])))
BUDGET = Budget.approximate(1.0, 1e-6)


def sample(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(size=n)


def door(x, y, parts, seed=0):
    plan = Plan((Line("steps", "test", 1.0, "", parts=parts),)).calibrate(BUDGET)
    ledger = Ledger(BUDGET, "replace", rehearsal=True)
    return Curator(Central(ArraySource(x, y, Response())), plan, ledger, SeededNoise(seed)), ledger


@pytest.mark.parametrize("parts", [2, 3, 10])
def test_every_record_is_in_exactly_one_part_of_about_equal_size(parts):
    records = Records(*sample(9000))
    sizes = [Part(QUERY, t, parts).of(records).sum() for t in range(parts)]
    assert sum(sizes) == 9000
    assert np.abs(np.array(sizes) - 9000 / parts).max() < 5 * np.sqrt(9000 / parts)  # five standard deviations


def test_the_part_of_a_record_depends_on_nothing_but_itself():
    x, y = sample(500)
    order = np.random.default_rng(1).permutation(500)
    assert (part_of(Records(x, y), 4)[order] == part_of(Records(x[order], y[order]), 4)).all()
    assert part_of(Records(x[7:8], y[7:8]), 4)[0] == part_of(Records(x, y), 4)[7]


def test_whole_numbers_are_spread_over_the_parts_too():
    """Their low bits are all zero in a float; a hash that looks at low bits alone would put them in one part."""
    x = np.arange(3000.0).reshape(-1, 1)
    sizes = np.bincount(part_of(Records(x, np.zeros(3000)), 3), minlength=3)
    assert sizes.min() > 800


def test_all_parts_together_cost_one_release():
    (x, y), total = sample(2000), 0.0
    curator, ledger = door(x, y, 3)
    for t in range(3):
        total += curator.answer(Part(QUERY, t, 3), "steps").value.sum()
    assert total_epsilon([entry.event for entry in ledger.entries], 1e-6) == pytest.approx(1.0)  # one entry, whole
    # Noise per bin and part: sqrt(2) times 4.22; six of them.
    assert abs(total - 2000) < 5 * np.sqrt(6) * np.sqrt(2) * 4.23


def test_a_part_is_answered_once_and_only_if_planned():
    x, y = sample(50)
    curator, _ = door(x, y, 2)
    curator.answer(Part(QUERY, 1, 2), "steps")
    for part in (1, 2, -1):
        with pytest.raises(RuntimeError, match="no unanswered part"):
            curator.answer(Part(QUERY, part, 2), "steps")


def test_a_refused_question_does_not_make_the_next_part_free():
    x, y = sample(50)
    curator, ledger = door(x, y, 2)
    for query in (QUERY, Part(QUERY, 0, 3)):  # all records, or a part of another division
        with pytest.raises(RuntimeError, match="no unanswered part"):
            curator.answer(query, "steps")
    assert not ledger.entries
    curator.answer(Part(QUERY, 0, 2), "steps")
    assert len(ledger.entries) == 1


def test_replacing_a_record_by_one_of_another_part_moves_all_answers_by_no_more_than_the_diameter():
    """Attack: the worst replacement within a part and across parts, over all parts together (Part's proof)."""
    query = Moments(Bounds(-1.0, 1.0).grid(3), 1.0)
    rng = np.random.default_rng(3)
    base, y = rng.uniform(-1, 1, (20, 3)), np.zeros(20)
    parts = [Part(query, t, 2) for t in range(2)]
    worst = 0.0
    for _ in range(300):
        a, b = 10.0 * rng.normal(size=(2, 1, 3))
        one, other = (Records(np.vstack([base, row]), np.append(y, 0.0)) for row in (a, b))
        moved = [(part.of(one) - part.of(other)) * part.weights for part in parts]
        worst = max(worst, float(np.linalg.norm(moved)))
    assert 0.8 * parts[0].diameter < worst <= parts[0].diameter * (1 + 1e-12)
