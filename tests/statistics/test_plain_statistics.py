"""Where nothing is clipped, each sum is the plain statistic: to the bit on the grid, to the grid's bound off it."""

import numpy as np
import pytest

from sfumato.bounds import Bounds
from sfumato.records import Records
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct
from sfumato.statistics.histograms import (
    Bins,
    LinearHistograms,
    NormHistogram,
    OctaveHistograms,
    ProjectionHistogram,
    ResponseHistogram,
    octave_edges,
)
from sfumato.statistics.moments import Moments
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening

N, P = 500, 4
GRID = Bounds(-2.0, 2.0).grid(P)  # half width 2, centre 0


@pytest.fixture
def records():
    rng = np.random.default_rng(0)
    return Records(rng.uniform(-1.0, 1.0, size=(N, P)), rng.normal(size=N))


@pytest.fixture
def whitening():
    rng = np.random.default_rng(1)
    matrix = np.eye(P) + 0.2 * rng.normal(size=(P, P))
    return Whitening(GRID, matrix, rng.uniform(-0.1, 0.1, P), cap=8.0)


def values(query, records):
    return query.of(records) * query.grid


def z_of(whitening, records):
    return (records.x / 2.0 - whitening.mean) @ whitening.matrix.T


def test_moments_of_records_on_the_grid_are_exact():
    rng = np.random.default_rng(2)
    on_grid = rng.integers(-64, 65, size=(N, P)) / 2.0**7  # multiples of the moments' unit, 2 / 2**15
    query = Moments(GRID, radius=2.0)
    released = values(query, Records(on_grid * 2.0, np.zeros(N)))
    upper = (on_grid.T @ on_grid)[np.triu_indices(P)]
    assert np.array_equal(released, np.concatenate([on_grid.sum(axis=0), upper]))


def test_moments_off_the_grid_are_within_its_bound(records):
    query = Moments(GRID, radius=2.0)
    released, u = values(query, records), records.x / 2.0
    step = 0.5 * (2.0 / 2**15 + 2.0**-20)  # rounded twice: to the grid of x, then to that of the radius
    assert np.abs(released[:P] - u.sum(axis=0)).max() <= N * step
    upper = (u.T @ u)[np.triu_indices(P)]
    assert np.abs(released[P:] - upper).max() <= N * step * (2 * np.abs(u).max() + step)


def test_clipped_moments_are_those_of_radially_clipped_records(records):
    radius = 0.3
    u = records.x / 2.0
    length = np.linalg.norm(u, axis=1, keepdims=True)
    clipped = u * np.minimum(1.0, radius / length)
    released = values(Moments(GRID, radius), records)
    step = 2.0 * radius / 2**15  # rounded, then truncated
    assert np.abs(released[:P] - clipped.sum(axis=0)).max() <= N * step
    assert np.abs(released[P:] - (clipped.T @ clipped)[np.triu_indices(P)]).max() <= N * step * (2 * radius + step)


def test_whitened_records_are_the_linear_map(records, whitening):
    z = whitening.integers(records)
    # Off by half a unit from rounding, and from rounding x (2**-20) and W (relative 2**-25) before.
    assert np.abs(z[:, :-1] / whitening.unit - z_of(whitening, records)).max() <= 0.51 / whitening.unit
    assert (z[:, -1] == whitening.unit).all()
    assert np.allclose(whitening.exact_matrix, whitening.matrix, atol=np.abs(whitening.matrix).max() * 2.0**-25)


def test_clipping_shortens_a_record_along_its_own_direction(records, whitening):
    short = Whitening(GRID, whitening.matrix, whitening.mean, cap=0.5)
    z, whole = short.integers(records)[:, :-1] / short.unit, z_of(whitening, records)
    length = np.linalg.norm(whole, axis=1, keepdims=True)
    expected = whole * np.minimum(1.0, 0.5 / length)
    assert (length > 0.5).any() and (length < 0.5).any()
    assert np.abs(z - expected).max() <= 1.6 / short.unit  # rounded, then truncated


def residual_of(whitening, scale=1.0):
    rng = np.random.default_rng(3)
    bins = Bins(np.linspace(-1.5, 1.5, 9))
    return Residual(whitening, bins, rng.normal(size=(bins.count, 2)), rng.normal(size=(P + 1, 2)) / 2, scale)


def plain_residual(residual, records):
    z = np.column_stack([z_of(residual.whitening, records), np.ones(N)])
    f = residual.table[np.digitize(records.y, residual.bins.edges)]
    return z, f - z @ residual.coefficients


def test_residual_products_are_the_gradient_of_least_squares(records, whitening):
    residual = residual_of(whitening)
    query = ResidualProduct(residual, size=50.0)
    z, e = plain_residual(residual, records)
    assert (np.linalg.norm(z, axis=1) * np.linalg.norm(e, axis=1)).max() < 50.0
    z_step, e_unit = 0.51 / whitening.unit, residual.unit
    e_step = 0.5 * e_unit + z_step * np.abs(residual.coefficients).sum(axis=0).max() + 2.0**-15
    bound = N * (np.abs(z).max() * e_step + np.abs(e).max() * z_step + z_step * e_step)
    assert np.abs(values(query, records) - z.T @ e).max() <= bound


def test_a_clipped_product_keeps_the_direction_of_the_residual(records, whitening):
    residual = residual_of(whitening)
    size = 0.2
    z, e = plain_residual(residual, records)
    length = np.linalg.norm(z, axis=1) * np.linalg.norm(e, axis=1)
    clipped = e * np.minimum(1.0, size * np.sqrt(P + 1) / length)[:, None]
    released = values(ResidualProduct(residual, size), records)
    # An error of one unit in e, a half in z: relative to a sum of N records these are below 1e-3.
    assert np.abs(released - z.T @ clipped).max() <= 1e-3 * N * size


def test_residual_sizes_are_counted_in_their_bins(records, whitening):
    query = ResidualHistogram(residual_of(whitening))
    z, e = plain_residual(query.residual, records)
    size = np.linalg.norm(z, axis=1) * np.linalg.norm(e, axis=1) / np.sqrt(P + 1)
    expected = np.bincount(np.searchsorted(query.sizes[:-1], size), minlength=query.BINS)
    near_an_edge = (np.abs(size[:, None] / query.sizes - 1) < 1e-2).any(axis=1).sum()
    assert np.abs(query.of(records) - expected).sum() <= 2 * near_an_edge < N


def test_slice_sums_and_second_moment(records, whitening):
    bins = Bins(np.linspace(-1.0, 1.0, 5))
    slice_of = np.array([0, 0, 1, 1, 2, 2])
    released = values(SlicedMoments(whitening, bins, slice_of, 3), records)
    counted = values(SlicedMoments(whitening, bins, slice_of, 3, count_weight=0.5), records)
    z = z_of(whitening, records)
    label = slice_of[np.digitize(records.y, bins.edges)]
    sums = np.stack([z[label == h].sum(axis=0) for h in range(3)])
    step = 0.51 / whitening.unit
    assert np.abs(released[: 3 * P].reshape(3, P) - sums).max() <= N * step
    upper = (z.T @ z)[np.triu_indices(P)]
    assert np.abs(released[3 * P :] - upper).max() <= N * step * (2 * np.abs(z).max() + step)
    assert np.array_equal(counted, np.append(released, np.bincount(label, minlength=3)))


def test_histogram_of_the_response_is_numpys(records):
    edges = np.linspace(-1.0, 1.0, 7)
    whole = np.concatenate([[-np.inf], edges, [np.inf]])
    assert np.array_equal(ResponseHistogram(Bins(edges)).of(records), np.histogram(records.y, whole)[0])


def test_histogram_of_classes_counts_them():
    codes = np.random.default_rng(4).integers(0, 6, N)
    query = ResponseHistogram(Bins(np.empty(0), categories=7))
    assert query.of(Records(np.zeros((N, 1)), codes)).tolist() == [int((codes == k).sum()) for k in range(7)]


def test_linear_histograms_are_numpys(records):
    lower, upper = np.full(P, -0.75), np.array([0.25, 0.5, 0.75, 1.25])
    counts = LinearHistograms(lower, upper, 8).of(records)
    for j in range(P):
        edges = np.concatenate([[-np.inf], lower[j] + (upper[j] - lower[j]) * np.arange(9) / 8, [np.inf]])
        assert np.array_equal(counts[j], np.histogram(records.x[:, j], edges)[0])


def test_lengths_are_counted_in_their_bins(records):
    query = NormHistogram(GRID)
    length = np.linalg.norm(records.x / 2.0, axis=1)
    expected = np.bincount(np.searchsorted(query.radii[:-1], length), minlength=query.BINS)
    near_an_edge = (np.abs(length[:, None] / query.radii - 1) < 1e-4).any(axis=1).sum()
    assert np.abs(query.of(records) - expected).sum() <= 2 * near_an_edge < 20
    assert query.radii[-1] == pytest.approx(np.sqrt(P))  # nothing inside the box is longer


def octave(numbers):
    """Bin of each number, read off the histogram of each as its own feature."""
    numbers = np.asarray(numbers, dtype=float)
    counts = OctaveHistograms(len(numbers)).of(Records(numbers[None], np.zeros(1)))
    assert (counts.sum(axis=1) == 1).all()
    return counts.argmax(axis=1)


def test_octaves_tell_orders_of_magnitude_apart():
    powers = np.arange(-39, 40)
    bins = octave(np.concatenate([1.3 * 2.0**powers, -1.3 * 2.0**powers]))
    assert len(set(bins.tolist())) == len(bins)
    assert (np.diff(octave(np.sort(np.concatenate([-(2.0**powers), [0.0], 2.0**powers])))) > 0).all()
    tiny, huge = octave(np.array([0.0, 5e-324, -1e-300])), octave(np.array([2.0**41, 1e308]))
    assert len(set(tiny.tolist())) == 1 and len(set(huge.tolist())) == 1
    counts = OctaveHistograms(1).of(Records(np.array([[1.0], [1.9], [2.0], [-1.0], [0.0]]), np.zeros(5)))
    assert sorted(counts[counts > 0].tolist()) == [1, 1, 1, 2]


def test_octave_edges_separate_what_octaves_separate():
    sizes = 1.3 * 2.0 ** np.arange(-45, 45.0)
    numbers = np.concatenate([-sizes[::-1], sizes])
    by_edges = np.searchsorted(octave_edges(), numbers, side="right")
    assert np.array_equal(np.diff(octave(numbers)) > 0, np.diff(by_edges) > 0)


def test_the_picture_is_a_two_dimensional_histogram(records, whitening):
    bins, direction = Bins(np.linspace(-1.0, 1.0, 3)), np.array([1.0, 2.0, 0.0, -1.0])
    query = ProjectionHistogram(whitening, direction, bins, np.array([0, 1, 2, 0]), 3, 12)
    position = z_of(whitening, records) @ (direction / np.linalg.norm(direction))
    groups = np.array([0, 1, 2, 0])[np.digitize(records.y, bins.edges)]
    inner = query.edges[1:-1]
    expected = np.zeros(query.shape, dtype=int)
    np.add.at(expected, (np.searchsorted(inner, position, side="right"), groups), 1)
    near_an_edge = (np.abs(position[:, None] - inner) < 5.0 / whitening.unit).any(axis=1).sum()
    assert np.abs(query.of(records) - expected).sum() <= 2 * near_an_edge < N / 5
    assert query.of(records).sum() == N
