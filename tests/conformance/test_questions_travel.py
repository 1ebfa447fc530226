"""Every question of the core travels as plain JSON and is the same question when it arrives."""

import json

import numpy as np
import pytest

from sfumato.bounds import Bounds
from sfumato.privacy.events import Gaussian
from sfumato.privacy.mechanisms import gaussian_std
from sfumato.records import Records
from sfumato.statistics.gradients import Residual, ResidualProduct
from sfumato.statistics.histograms import Bins
from sfumato.statistics.parts import OfColumn, OnCells, OnColumns, Part, PerPerson
from sfumato.statistics.whitening import Whitening
from sfumato.statistics.wire import FIELDS, SITES, Decoder, RefusedError, dump_json, encode
from sfumato.sums import BoundedSum

BINS = Bins(np.array([-1.0, 0.1, 0.7]))
WHITENING = Whitening(Bounds(-2.0, 3.0).grid(3), np.diag([1.0, 2.0, 0.3]) + 0.1, np.array([0.1, 0.0, -0.2]), 3.0)
RESIDUAL = Residual(WHITENING, BINS, np.arange(8.0).reshape(4, 2) / 7, np.ones((4, 2)) / 3, 1.3)
RECORDS = Records(np.random.default_rng(0).normal(size=(200, 3)), np.random.default_rng(1).normal(size=200))


def is_core(query):
    """Of the core, inside and out: the methods of the papers have questions of their own, which stay at home."""
    inner = getattr(query, "query", None)
    return type(query).__module__.startswith("sfumato.statistics.") and (inner is None or is_core(inner))


def concrete(kind):
    for child in kind.__subclasses__():
        if child.__module__.startswith("sfumato.statistics.") and not getattr(child, "__abstractmethods__", None):
            yield child
        yield from concrete(child)


def test_a_question_that_arrives_gives_the_same_sum_and_the_same_noise(case):
    if not is_core(case.query):
        with pytest.raises(RefusedError):
            encode(case.query)
        return
    back = Decoder().query(json.loads(dump_json(encode(case.query))))
    records = case.records(np.random.default_rng(0), 200)
    np.testing.assert_array_equal(back.of(records), case.query.of(records))
    for relation in ("replace", "add-remove"):
        mine, theirs = (gaussian_std(query, relation, Gaussian(0.5)) for query in (case.query, back))
        np.testing.assert_array_equal(mine, theirs)


def test_every_question_of_the_core_is_among_them(registered):
    known = {kind for kind in FIELDS if issubclass(kind, BoundedSum)}
    assert {kind.__name__ for kind in known} == {kind.__name__ for kind in concrete(BoundedSum)}
    assert {f"{kind.__module__}.{kind.__qualname__}" for kind in known} <= registered


def test_questions_about_persons_parts_and_columns_travel_inside_one_another():
    query = PerPerson(Part(OnColumns(ResidualProduct(RESIDUAL, 1.1), np.array([2, 0, 1])), 0, 2), 3)
    back = Decoder().query(json.loads(dump_json(encode(query))))
    np.testing.assert_array_equal(back.of(RECORDS), query.of(RECORDS))
    assert back.sensitivity("replace") == query.sensitivity("replace")


def test_questions_nested_without_end_are_refused():
    query = ResidualProduct(RESIDUAL, 1.1)
    for _ in range(20):
        query = PerPerson(query, 1)
    with pytest.raises(RefusedError):
        Decoder().query(encode(query))


def test_what_a_decoder_keeps_is_bounded_and_what_is_in_use_stays():
    decoder = Decoder(keep=8)
    first = decoder.query(encode(ResidualProduct(RESIDUAL, 1.0))).residual.whitening
    for size in range(1, 30):
        query = decoder.query(encode(ResidualProduct(RESIDUAL, float(size))))
        assert query.residual.whitening is first and len(decoder._known) <= 8


def test_sites_answer_no_more_than_they_did():
    """Questions of the core that no site has checks for are refused there."""
    assert not {OfColumn, OnCells, Part, PerPerson} & set(SITES) and set(SITES) < set(FIELDS)
