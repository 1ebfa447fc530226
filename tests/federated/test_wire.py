"""Questions as plain JSON, and what a site refuses to be asked."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sfumato.bounds import Bounds
from sfumato.federated.checks import SiteDecoder, check
from sfumato.federated.store import Store
from sfumato.federated.terms import KNOWN, question_kind
from sfumato.methods import FAMILY, load
from sfumato.privacy.events import Gaussian
from sfumato.privacy.mechanisms import gaussian_std
from sfumato.records import Records, Response
from sfumato.settings.federated import SiteFacts
from sfumato.statistics import histograms
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct, ResponseProduct
from sfumato.statistics.histograms import ProjectionHistogram
from sfumato.statistics.moments import Moments, SquareSums
from sfumato.statistics.parts import OnColumns
from sfumato.statistics.scores import SignScores
from sfumato.statistics.slices import SlicedMoments, SliceSecondMoments
from sfumato.statistics.whitening import Whitening
from sfumato.statistics.wire import RefusedError, dump_json, encode

P = 3
FACTS = SiteFacts(P, 50, Response())
GRID = Bounds(-2.0, 3.0).grid(P)
WHITENING = Whitening(GRID, np.diag([1.0, 2.0, 0.3]) + 0.1, np.array([0.1, 0.0, -0.2]), 3.0)
BINS = histograms.Bins(np.array([-1.0, 0.1, 0.7]))
RESIDUAL = Residual(WHITENING, BINS, np.arange(8.0).reshape(4, 2) / 7, np.ones((P + 1, 2)) / 3, 1.3)
GROUPS = np.array([0, 0, 1, 1])
QUERIES = [
    histograms.ResponseHistogram(BINS),
    histograms.NormHistogram(GRID),
    histograms.OctaveHistograms(P),
    histograms.LinearHistograms(np.full(P, -1.0), np.full(P, 1.0 / 3.0), 5),
    Moments(GRID, 0.7),
    ResidualHistogram(RESIDUAL),
    ResidualProduct(RESIDUAL, 1.1),
    SlicedMoments(WHITENING, BINS, GROUPS, 2, 1.0, 0.5),
    ProjectionHistogram(WHITENING, np.array([1.0, -1.0, 0.5]), BINS, GROUPS, 2, 6),
    SignScores(np.array([0.0, 0.5, -0.1]), BINS, np.array([[-1.0], [-0.2], [0.7], [1.0]])),
    histograms.DistanceHistograms(np.array([-1.0, 0.0, 1e9]), np.array([0.0, 0.5, 1e3])),
    SliceSecondMoments(WHITENING, BINS, GROUPS, 2),
    SquareSums(GRID, 0.3),
    ResponseProduct(RESIDUAL, np.linspace(-2.0, 2.0, 12).reshape(4, 3), 1.1),
]
EVERYBODY = histograms.Bins(np.empty(0))
LIMITED = histograms.NormHistogram(replace(GRID, limits=np.array([[-1.0] * P, [0.5] * P])))
TWO = OnColumns(SignScores(np.array([0.0, 0.5]), BINS, np.ones((4, 2))), np.array([2, 0]))
RECORDS = Records(np.random.default_rng(0).normal(size=(50, P)), np.random.default_rng(1).normal(size=50))


@pytest.mark.parametrize("query", [*QUERIES, TWO, LIMITED], ids=lambda query: type(query).__name__)
def test_a_question_read_back_gives_the_same_sum_and_the_same_noise(query):
    back = SiteDecoder().query(json.loads(dump_json(encode(query))))
    check(back, FACTS)
    np.testing.assert_array_equal(back.of(RECORDS), query.of(RECORDS))
    event = Gaussian(0.5)
    np.testing.assert_array_equal(gaussian_std(back, "replace", event), gaussian_std(query, "replace", event))


def test_every_line_of_every_plan_has_a_kind_of_question():
    assert {question_kind(line) for line in KNOWN} == {type(query) for query in QUERIES}


def test_a_line_means_the_same_in_every_plan_and_keeps_its_answers_apart_from_all_others(tmp_path):
    """Names alone are proposed: two steps may share one only if it asks, costs and says the same in both."""
    seen = {}
    for member in filter(lambda member: member.about.federated, map(load, FAMILY.values())):
        for attack in member.about.attacks({"epsilon": 1.0, "n_directions": 1, "bounds": Bounds(-1, 1)}):
            estimator, response = attack.estimator, Response() if attack.responses is None else Response(4)
            estimator.n_features_in_ = attack.n_features // 2
            for line in estimator._task(attack.n_features, 500, response).plan().lines:
                if line.name in KNOWN and "SparseSIR" not in attack.name:  # over sites it votes: another plan
                    what = (line.asks, line.mechanism, line.parts)
                    assert seen.setdefault(line.name, what) == what, line.name
                    assert (KNOWN[line.name].asks, KNOWN[line.name].mechanism, KNOWN[line.name].parts) == what
                else:
                    assert "SparseSIR" in attack.name, line.name
    paths = {Store(tmp_path)._path("ab" * 8, line, "npy") for line in KNOWN}
    assert len(paths) == len(KNOWN)


def test_one_bin_for_everybody_may_be_asked_for_whatever_the_response_is():
    for response in (Response(), Response(3), Response(4096, hashed=True)):
        check(SlicedMoments(WHITENING, EVERYBODY, np.zeros(1, dtype=np.int64), 1), replace(FACTS, response=response))


def test_equal_parts_become_one_object_so_that_records_are_whitened_once():
    decoder = SiteDecoder()
    first, second = (decoder.query(encode(query)) for query in (ResidualHistogram(RESIDUAL), QUERIES[7]))
    assert first.residual.whitening is second.whitening


def _wrong(query, field, value):
    data = encode(query)
    holder = data
    *path, last = field.split(".")
    for name in path:
        holder = holder[name]
    holder[last] = value
    return data


def _floats(*shape):
    array = np.zeros(shape)
    return encode(histograms.LinearHistograms(array, array, 1))["lower"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"kind": "os.system"},
        {"kind": ["OctaveHistograms"]},
        encode(histograms.OctaveHistograms(P)) | {"more": 1},
        {"kind": "OctaveHistograms"},
        {"kind": "OctaveHistograms", "n_features": True},
        {"kind": "OctaveHistograms", "n_features": -3},
        {"kind": "OctaveHistograms", "n_features": 10**12},
        encode(GRID),
        _wrong(QUERIES[4], "radius", float("nan")),
        _wrong(QUERIES[4], "radius", "1"),
        _wrong(QUERIES[4], "source", encode(BINS)),
        _wrong(QUERIES[0], "bins.edges.shape", [4]),
        _wrong(QUERIES[0], "bins.edges.shape", [-3]),
        _wrong(QUERIES[0], "bins.edges.data", "no base64!"),
        _wrong(QUERIES[0], "bins.edges.data", "////////f38AAAAAAADwfwAAAAAAAPB/"),
        _wrong(QUERIES[0], "bins.edges.type", "object"),
        _wrong(TWO, "query", encode(TWO)),
        _wrong(TWO, "query", encode(GRID)),
        _wrong(TWO, "columns", _floats(2)),
    ],
)
def test_what_is_not_a_known_question_is_refused(data):
    with pytest.raises(RefusedError):
        SiteDecoder().query(data)


@pytest.mark.parametrize(
    "data",
    [
        encode(histograms.OctaveHistograms(P + 1)),
        encode(histograms.ResponseHistogram(histograms.Bins(np.array([1.0, 1.0])))),
        encode(histograms.ResponseHistogram(histograms.Bins(np.empty(0), 7))),
        encode(histograms.LinearHistograms(np.zeros(P), np.zeros(P), 4)),
        encode(histograms.LinearHistograms(np.full(P, -1e300), np.full(P, 1e300), 4)),
        _wrong(QUERIES[4], "radius", 0.0),
        _wrong(QUERIES[4], "radius", -1.0),
        _wrong(QUERIES[4], "centre_weight", 0.0),
        _wrong(QUERIES[4], "source.half_width", _floats(P)),
        _wrong(QUERIES[5], "residual.whitening.matrix", _floats(P, P)),
        _wrong(QUERIES[5], "residual.whitening.cap", 1e9),
        _wrong(QUERIES[5], "residual.whitening.cap", 0.0),
        _wrong(QUERIES[5], "residual.scale", 0.0),
        _wrong(QUERIES[6], "size", 1e-9),
        _wrong(QUERIES[6], "size", -1.0),
        _wrong(QUERIES[6], "residual.table", _floats(3, 2)),
        _wrong(QUERIES[6], "residual.coefficients", _floats(P, 2)),
        encode(SlicedMoments(WHITENING, BINS, np.array([0, 1, 2, 5]), 2)),
        encode(SlicedMoments(WHITENING, BINS, np.array([0, 1, -1, 0]), 2)),
        encode(SlicedMoments(WHITENING, BINS, np.array([0, 1]), 2)),
        _wrong(QUERIES[8], "direction", _floats(P)),
        _wrong(QUERIES[8], "columns", 10_000),
        _wrong(QUERIES[9], "table", _floats(3, 1)),
        _wrong(QUERIES[9], "centre", _floats(P + 1)),
        encode(SliceSecondMoments(WHITENING, BINS, np.array([0, 1, 2, 5]), 2)),
        encode(SliceSecondMoments(WHITENING, BINS, np.array([0, 1, -1, 0]), 2)),
        encode(SliceSecondMoments(WHITENING, BINS, np.array([0, 1]), 2)),
        encode(SliceSecondMoments(WHITENING, BINS, GROUPS, 513)),
        _wrong(QUERIES[11], "slice_weight", 0.0),
        _wrong(QUERIES[11], "slice_weight", -1.0),
        _wrong(QUERIES[11], "slice_weight", 1e9),
        _wrong(QUERIES[11], "whitening.matrix", _floats(P, P)),
        _wrong(QUERIES[11], "whitening.cap", 1e9),
        _wrong(QUERIES[13], "size", 1e-9),
        _wrong(QUERIES[13], "size", -1.0),
        _wrong(QUERIES[13], "functions", _floats(3, 3)),
        _wrong(QUERIES[13], "functions", encode(replace(QUERIES[13], functions=np.full((4, 3), 65.0)))["functions"]),
        _wrong(QUERIES[13], "residual.scale", 0.0),
        _wrong(QUERIES[12], "clip", 0.0),
        _wrong(QUERIES[12], "clip", -1.0),
        _wrong(QUERIES[12], "clip", 1e300),
        _wrong(QUERIES[12], "source.half_width", _floats(P)),
        _wrong(QUERIES[12], "source.centre", _floats(P + 1)),
        encode(OnColumns(TWO.query, np.array([1, 1]))),
        encode(OnColumns(TWO.query, np.array([1, 3]))),
        encode(OnColumns(TWO.query, np.array([-1, 1]))),
        encode(OnColumns(TWO.query, np.array([1]))),
        encode(OnColumns(TWO.query, np.array([0, 1, 2, 0]))),
    ],
)
def test_parameters_a_bound_was_not_proved_for_are_refused(data):
    with pytest.raises(RefusedError):
        check(SiteDecoder().query(data), FACTS)


def test_an_answer_that_would_fill_the_memory_is_refused():
    p, bins = 1_000, histograms.Bins(np.arange(399.0))
    whitening = Whitening(Bounds(-1, 1).grid(p), np.eye(p), np.zeros(p), 3.0)
    with pytest.raises(RefusedError, match="too many numbers"):
        check(SliceSecondMoments(whitening, bins, np.arange(400), 400), SiteFacts(p, 50, Response()))
