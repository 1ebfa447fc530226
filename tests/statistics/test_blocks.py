"""Sums made block by block, by tables and from the bits of floats are those of the plain formulas, to the last bit."""

from functools import cache

import numpy as np
import pytest

from sfumato.blocks import NUMBERS, blocks, cross_product, product
from sfumato.bounds import Grid
from sfumato.records import Records
from sfumato.statistics.gradients import Residual, ResidualHistogram, ResidualProduct
from sfumato.statistics.histograms import (
    OCTAVES,
    Bins,
    DistanceHistograms,
    LinearHistograms,
    NormHistogram,
    OctaveHistograms,
    octave_edges,
)
from sfumato.statistics.lookup import places
from sfumato.statistics.moments import UNITS, Moments
from sfumato.statistics.whitening import Whitening
from sfumato.sums import shrinkage, upper_pairs

SHAPES = [(2 * NUMBERS + 17, 1), (60_011, 20), (11_003, 101), (1_100, 1_100)]
AWKWARD = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 2.0**-40, 2.0**-41, 1.0, 3.0, 2.0**39, 2.0**40, 1e300, 1.7e308]


def awkward(rng, shape):
    """Numbers of every size, zeros, denormals, powers of two and what lies next to them, all of both signs."""
    powers = 2.0 ** rng.integers(-60, 60, size=shape)
    kinds = [
        rng.standard_normal(shape),
        np.nextafter(powers, rng.choice([0.0, np.inf], size=shape)),
        powers,
        rng.choice(AWKWARD, size=shape),
        rng.standard_normal(shape) * 10.0 ** rng.integers(-300, 300, size=shape),
    ]
    return np.choose(rng.choice(5, size=shape, p=[0.6, 0.1, 0.1, 0.1, 0.1]), kinds) * rng.choice([-1.0, 1.0], shape)


def grid_of(rng, p, limits=None):
    return Grid(rng.normal(size=p), 2.0 ** rng.uniform(-3, 5, size=p), limits)


def integers(grid, x):
    within = x if grid.limits is None else np.clip(x, *grid.limits)
    with np.errstate(over="ignore"):
        scaled = np.rint((within - grid.centre) * (2.0**grid.bits / grid.half_width))
    return np.clip(scaled, -(2.0**grid.bits), 2.0**grid.bits)


def whitened(whitening, x):
    """Rows (n, p + 1) by the formulas of the docstring, on the whole table."""
    mean = np.rint(np.clip(whitening.mean, -1, 1) * 2.0**whitening.source.bits)
    z = (integers(whitening.source, x) - mean) @ whitening.integer_matrix.T
    z *= whitening.matrix_unit * whitening.unit / 2.0**whitening.source.bits
    largest = 2.0 ** ((52 - z.shape[1].bit_length()) // 2)
    z = np.clip(np.rint(z), -largest, largest)
    z = np.trunc(z * shrinkage((z**2).sum(axis=1), whitening.cap * whitening.unit)[:, None])
    return np.column_stack([z, np.full(len(z), whitening.unit)])


def whitening_of(rng, p):
    matrix = np.eye(p) + rng.normal(size=(p, p)) / (2.0 * np.sqrt(p))
    return Whitening(grid_of(rng, p), matrix, rng.uniform(-0.1, 0.1, p), cap=3.0 * np.sqrt(p))


@pytest.mark.parametrize("p", [1, 2, 7, 1_000, 3_000])
def test_blocks_are_all_rows_once_and_never_few(p):
    cut = list(blocks(50_000, p))
    assert np.array_equal(np.concatenate([np.arange(50_000)[here] for here in cut]), np.arange(50_000))
    assert all(512 <= here.stop - here.start < 2 * max(512, NUMBERS / p) + 1_024 for here in cut[:-1])


@pytest.mark.parametrize("edges", ["octaves", "even", "some equal", "lengths", "one", "crowded", "tiny"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_places_are_those_of_a_binary_search(edges, side):
    rng = np.random.default_rng(0)
    edges = {
        "octaves": octave_edges(),
        "even": np.linspace(-4.0, 3.0, 49),
        "some equal": np.sort(rng.integers(-9, 9, 30)).astype(float),
        "lengths": (1e6 * 2.0 ** (np.arange(-63, 0) / 4.0)) ** 2,
        "one": np.zeros(1),
        "crowded": np.sort(1.0 + 1e-12 * rng.normal(size=99)),
        "tiny": np.sort(rng.integers(-50, 50, 40) * 5e-324),
    }[edges]
    near = np.concatenate([edges, -edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf)])
    values = np.concatenate([near, awkward(rng, 5_000), rng.uniform(edges[0], edges[-1], 5_000)])
    assert np.array_equal(places(edges, values, side), np.searchsorted(edges, values, side))


@pytest.mark.parametrize("shape", SHAPES)
def test_octaves_of_awkward_numbers(shape):
    rng = np.random.default_rng(1)
    x = awkward(rng, shape)
    exponent = np.frexp(x)[1]  # 2**(exponent - 1) <= |x| < 2**exponent
    octave = np.where(np.abs(x) < 2.0**-OCTAVES, 0, np.clip(exponent + OCTAVES, 0, 2 * OCTAVES + 1))
    index = np.where(np.signbit(x), -octave, octave) + 2 * OCTAVES + 1
    counts = OctaveHistograms(shape[1]).of(Records(x, np.zeros(len(x))))
    for j in (0, shape[1] // 2, shape[1] - 1):
        assert np.array_equal(counts[j], np.bincount(index[:, j], minlength=counts.shape[1]))
    assert counts.sum() == x.size


@pytest.mark.parametrize("shape", SHAPES)
def test_distances_of_awkward_numbers(shape):
    rng = np.random.default_rng(2)
    x, p = awkward(rng, shape), shape[1]
    middle = rng.choice([0.0, 1.0, -1e300, 3.3], size=p)
    step = rng.choice([0.0, 2.0**-9, 0.3, 1e-320, 2.0**41], size=p)
    with np.errstate(over="ignore"):
        distance = np.abs(x - middle)
    octave = np.where(np.isinf(distance), 2 * OCTAVES + 1, np.clip(np.frexp(distance)[1] + OCTAVES, 0, 2 * OCTAVES + 1))
    octave[(distance < 2.0**-OCTAVES) | (distance < step)] = 0
    counts = DistanceHistograms(middle, step).of(Records(x, np.zeros(len(x))))
    for j in (0, p // 2, p - 1):
        assert np.array_equal(counts[j], np.bincount(octave[:, j], minlength=counts.shape[1]))
    assert counts.sum() == x.size


@pytest.mark.parametrize("shape", SHAPES)
def test_equal_bins_of_awkward_numbers(shape):
    rng = np.random.default_rng(3)
    x, p = awkward(rng, shape), shape[1]
    lower = rng.normal(size=p)
    query = LinearHistograms(lower, lower + 2.0 ** rng.uniform(-3, 3, p), 128)
    with np.errstate(over="ignore"):
        position = np.clip((x - lower) * (128 / (query.upper - lower)), -1, 128)
    # the number of a feature's first bin is added before the floor is taken, as ever
    index = np.floor(position + (np.arange(p) * 130 + 1.0)).astype(int)
    counts = query.of(Records(x, np.zeros(len(x))))
    assert np.array_equal(counts.ravel(), np.bincount(index.ravel(), minlength=130 * p))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limited", [False, True])
def test_grid_integers_lengths_and_moments(shape, limited):
    rng = np.random.default_rng(4)
    x, p = awkward(rng, shape), shape[1]
    limits = np.array([np.full(p, -2.0), rng.uniform(-1.0, 3.0, p)]) if limited else None
    grid, records = grid_of(rng, p, limits), Records(x, np.zeros(len(x)))
    plain = integers(grid, x)
    assert np.array_equal(grid.integers(x), plain)
    assert np.array_equal(grid.integers(np.asfortranarray(x)), plain)
    lengths = NormHistogram(grid)
    edges = (lengths.radii[:-1] * 2.0**grid.bits) ** 2
    index = np.searchsorted(edges, (plain**2).sum(axis=1))
    assert np.array_equal(lengths.of(records), np.bincount(index, minlength=64))
    query = Moments(grid, radius=0.7)
    u = plain * (UNITS / (0.7 * 2.0**grid.bits))
    largest = 2.0 ** ((52 - p.bit_length()) // 2)
    u = np.clip(np.rint(u), -largest, largest)
    u = np.trunc(u * shrinkage((u**2).sum(axis=1), UNITS)[:, None])
    assert np.array_equal(query.of(records), np.append(u.sum(axis=0), (u.T @ u)[upper_pairs(p)]))


@pytest.mark.parametrize("shape", SHAPES)
def test_whitened_integers_and_their_squares(shape):
    rng = np.random.default_rng(5)
    x, whitening = awkward(rng, shape), whitening_of(rng, shape[1])
    records, plain = Records(x, np.zeros(len(x))), whitened(whitening, x)
    assert np.array_equal(whitening.integers(records), plain)
    for here, z, squares in whitening.blocks(records, 700):
        assert np.array_equal(z, plain[here].T)
        assert np.array_equal(squares, (plain[here] ** 2).sum(axis=1))


@cache
def whitened_table(shape):
    """A table, its response, and what the formulas make of it: the same for all functions and coefficients."""
    rng = np.random.default_rng(6)
    whitening, x, y = whitening_of(rng, shape[1]), awkward(rng, shape), rng.normal(size=shape[0])
    return whitening, x, y, whitened(whitening, x)


@pytest.mark.parametrize("shape", [(150_011, 1), *SHAPES[1:]])
@pytest.mark.parametrize("q", [2, 12, 70])
@pytest.mark.parametrize(("first", "scale"), [(True, 2.5), (False, 2.5), (False, 0.01)])  # the last: cut residuals
def test_residual_sizes_and_products(shape, q, first, scale):
    rng, (whitening, x, y, z) = np.random.default_rng(8), whitened_table(shape)
    p1, bins, records = shape[1] + 1, Bins(np.linspace(-2.0, 2.0, 47)), Records(x, y)
    coefficients = np.zeros((p1, q)) if first else rng.normal(size=(p1, q)) / np.sqrt(p1)
    residual = Residual(whitening, bins, rng.normal(size=(48, q)), coefficients, scale)
    index = np.searchsorted(bins.edges, y, side="right")
    bits = min(20, 25 - p1.bit_length())
    f = np.rint(residual.table * (whitening.unit * 2.0**bits))[index]
    e = (f - z @ np.rint(coefficients * 2.0**bits)) / (whitening.unit * 2.0**bits * residual.unit)
    assert (np.abs(e).max() > 2.0**20) == (scale < 1.0)
    e = np.clip(np.rint(e), -(2.0**20), 2.0**20)
    squares = (z**2).sum(axis=1) * (e**2).sum(axis=1)
    sizes = ResidualHistogram(residual)
    edges = (sizes.sizes[:-1] / (residual.unit / whitening.unit / np.sqrt(p1))) ** 2
    assert np.array_equal(sizes.of(records), np.bincount(np.searchsorted(edges, squares), minlength=64))
    asked = ResidualProduct(residual, 0.6 * scale)
    short = np.trunc(e * shrinkage(squares, asked.norm)[:, None])
    assert np.array_equal(asked.of(records), z.T @ short)


@pytest.mark.parametrize("columns", [0, 1, 23, 24, 25, 3_967, 3_968, 3_969, 26_214])
@pytest.mark.parametrize("rows", [1, 12, 500])
def test_products_of_a_few_columns_at_a_time(rows, columns):
    rng = np.random.default_rng(7)
    matrix, z = rng.integers(-(2**15), 2**15, (rows, 21)) * 1.0, rng.integers(-(2**15), 2**15, (21, columns)) * 1.0
    e = np.trunc(matrix @ z / 2.0**15)
    assert np.array_equal(product(matrix, z), matrix @ z)
    assert np.array_equal(cross_product(e, z), e @ z.T)
