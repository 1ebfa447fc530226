"""Noise, bit by bit: the same bits give the same answer as arithmetic of hundreds of digits."""

import mpmath
import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.privacy import noise as module
from sfumato.privacy.noise import (
    Noise,
    SeededNoise,
    gumbel_argtop,
    randomised_response,
    rounded_gaussian,
    rounded_laplace,
)

LAWS = {"gaussian": rounded_gaussian, "laplace": rounded_laplace}


class Scripted(Noise):
    """Hands out the given words, then seeded ones, and remembers all of them."""

    def __init__(self, script, seed=0):
        self.script, self.rest, self.given = list(script), SeededNoise(seed), []

    def words(self, count):
        head, self.script = self.script[:count], self.script[count:]
        words = np.concatenate([np.array(head, dtype=np.uint64), self.rest.words(count - len(head))])
        self.given.extend(int(word) for word in words)
        return words


class Constant(Noise):
    def __init__(self, word):
        self.word = word

    def words(self, count):
        return np.full(count, self.word, dtype=np.uint64)


def tail(law, x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2 if law == "gaussian" else mpmath.exp(-x) / 2


def reference(law, scale, words):
    """(smallest, largest) value that the bits leave open, by mpmath's inverse error function or logarithm."""
    bits = 64 * len(words)
    with mpmath.workprec(2 * bits + 400):
        value = int.from_bytes(b"".join(word.to_bytes(8, "big") for word in words), "big")
        sign, value = (-1 if value >> (bits - 1) else 1), value & ((1 << (bits - 1)) - 1)
        ends = []
        for u in (mpmath.mpf(value + 1) / 2**bits, mpmath.mpf(value) / 2**bits):
            x = mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * u) if law == "gaussian" else -mpmath.log(2 * u)
            ends.append(sign * int(mpmath.nint(scale * x)))
        return sorted(ends)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1, 7, 2**29, 2**45])
def test_every_draw_is_what_its_bits_say(law, scale):
    for seed in range(25):
        source = Scripted([], seed)
        result = LAWS[law](source, scale, 1)[0]
        low, high = reference(law, scale, source.given)
        # At 2**45 floats leave nearly every draw in doubt, so this is the exact path.
        assert low == high == result


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(("scale", "n"), [(1, 0), (1, 3), (7, 20), (2**29, 2**29), (2**45, 2**46 + 1)])
@pytest.mark.parametrize("sign", [0, 2**63])
def test_a_word_on_a_rounding_boundary_is_settled_by_further_words(law, scale, n, sign):
    with mpmath.workprec(300):
        word = int(mpmath.floor(tail(law, (n + mpmath.mpf(1) / 2) / scale) * 2**64))
    source = Scripted([word | sign], seed=n % 97)
    result = LAWS[law](source, scale, 1)[0]
    assert len(source.given) >= 2
    assert [result, result] == reference(law, scale, source.given)
    assert abs(result) in (n, n + 1)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("word", [0, 1, 2**31, 2**63, 2**63 + 5])
def test_the_far_tail_is_exact_too(law, word):
    source = Scripted([word], seed=3)
    result = LAWS[law](source, 2**29, 1)[0]
    assert [result, result] == reference(law, 2**29, source.given)
    assert abs(result) > 6 * 2**29


def test_words_of_ones_give_the_middle():
    assert rounded_gaussian(Constant(2**64 - 1), 2**45, 3).tolist() == [0, 0, 0]
    assert rounded_laplace(Constant(2**63 - 1), 1, 3).tolist() == [0, 0, 0]


def test_a_broken_source_is_refused_instead_of_waited_for():
    with pytest.raises(RuntimeError, match="regular"):
        rounded_gaussian(Constant(0), 1, 1)
    with pytest.raises(RuntimeError, match="regular"):
        gumbel_argtop(Constant(2**62), np.array([5, 5]), 1.0, 1)


def test_float_quantiles_are_ten_times_better_than_the_code_assumes():
    rng = np.random.default_rng(11)
    u = np.concatenate(
        [
            rng.integers(2**32, 2**63, 400, dtype=np.uint64),
            (2.0 ** rng.uniform(32, 63, 400)).astype(np.uint64),
            2**63 - (2.0 ** rng.uniform(0, 62, 400)).astype(np.uint64),
        ]
    )
    log_u = np.log((u + 0.5) * 2.0**-64)
    with mpmath.workprec(250):
        for word, z, exponential in zip(u, module._GAUSSIAN[0](log_u), module._LAPLACE[0](log_u), strict=True):
            exact, z, exponential = (
                (int(word) + mpmath.mpf(0.5)) / 2**64,
                mpmath.mpf(z),
                mpmath.mpf(exponential),
            )
            # One Newton step measures the error of z: its own error is of second order, about 1e-30.
            assert abs((tail("gaussian", z) - exact) / mpmath.npdf(z)) < 1e-15 + 1e-14 * z
            assert abs(-mpmath.log(2 * exact) - exponential) < 1e-15 + 1e-14 * exponential


def test_exact_tails_agree_with_the_incomplete_gamma_function():
    with mpmath.workprec(400):
        for p, q in [(1, 2), (3, 2), (5, 2), (2**40 + 1, 2**41), (61, 7), (25, 2)]:
            x = mpmath.mpf(p) / q
            gaussian = mpmath.gammainc(0.5, x * x / 2) / (2 * mpmath.sqrt(mpmath.pi))
            for bits in (80, 144, 208):
                assert abs(module._gaussian_tail(p, q, bits) - gaussian * 2**bits) < 2
                assert abs(module._laplace_tail(p, q, bits) - tail("laplace", x) * 2**bits) < 2


def test_gumbel_orders_words_that_floats_cannot_tell_apart():
    for word in (2**20, 2**40, 2**62 + 12345, 2**64 - 2**20):  # a smaller u is a larger Gumbel variable
        scores = np.array([4, 4, -(10**6)])
        assert gumbel_argtop(Scripted([word, word + 1, 2**60]), scores, 1.0, 2).tolist() == [0, 1]
        assert gumbel_argtop(Scripted([word + 1, word, 2**60]), scores, 1.0, 2).tolist() == [1, 0]


@pytest.mark.parametrize("offset", [-16, 16])
@pytest.mark.parametrize("third", [-(10**12), 10**12])  # a leader far ahead makes the float keys coarse
@pytest.mark.parametrize("word", [2**61 + 10**16 * j for j in range(10)])
def test_gumbel_weighs_a_score_against_a_word_beyond_float_accuracy(offset, third, word):
    scale = 3.7
    with mpmath.workprec(300):
        exponential = -mpmath.log(1 - mpmath.mpf(word) / 2**64)
        tied = int(mpmath.floor((1 - mpmath.exp(-exponential * mpmath.exp(1 / mpmath.mpf(scale)))) * 2**64))
    source = Scripted([word, tied + offset, 2**60])
    order = [i for i in gumbel_argtop(source, np.array([10, 11, third]), scale, 3).tolist() if i != 2]
    assert order == ([1, 0] if offset < 0 else [0, 1])


@pytest.mark.parametrize(("further", "winner"), [(2**33, 0), (2**60, 1)])
def test_gumbel_is_unbounded(further, winner):
    # u = (0, further) / 2**128 is a Gumbel variable of 66 or 47; the first word alone only says: above 44.
    source = Scripted([0, 2**63, further, further])
    assert gumbel_argtop(source, np.array([0, 50]), 1.0, 1).tolist() == [winner]


def test_gumbel_takes_the_whole_range_of_integers():
    scores = np.array([2**63 - 1, -(2**63), 0, 2**63 - 3])
    assert gumbel_argtop(SeededNoise(1), scores, 1e-200, 4).tolist() == [0, 3, 2, 1]


def test_a_word_on_the_threshold_of_randomised_response_is_settled_by_further_words():
    bar = module._lie(3, 1.0, 64)
    labels = np.zeros(1, dtype=np.int64)
    low, high = Scripted([bar, 0]), Scripted([bar, 2**64 - 1])
    assert randomised_response(low, labels, 3, 1.0)[0] != 0
    assert randomised_response(high, labels, 3, 1.0)[0] == 0
    assert len(low.given) == len(high.given) == 3


def test_randomised_response_draws_the_same_whatever_the_labels():
    labels = np.random.default_rng(2).integers(0, 5, 1000)
    one, two = Scripted([], 4), Scripted([], 4)
    shift = (randomised_response(one, labels, 5, 0.7) - labels) % 5
    assert shift.tolist() == randomised_response(two, np.zeros(1000, dtype=np.int64), 5, 0.7).tolist()
    assert one.given == two.given


def test_randomised_response_never_raises_on_a_label():
    odd = np.array([[-(2**63), 2**63 - 1, 7]])
    assert randomised_response(SeededNoise(0), odd, 4, 100.0).tolist() == (odd % 4).tolist()


@pytest.mark.parametrize("shape", [(), 4, (0,), (2, 3)])
def test_shapes_are_kept(shape):
    assert rounded_gaussian(SeededNoise(0), 5, shape).shape == np.empty(shape).shape


def test_each_entry_has_its_own_scale():
    draws = rounded_gaussian(SeededNoise(0), np.array([1, 2**20, 2**40]), (200, 3)).std(axis=0)
    assert np.all(np.abs(draws / [1.04, 2**20, 2**40] - 1) < 5 / np.sqrt(2 * 200))


@pytest.mark.parametrize("scale", [0, -3, 1.5, True, 2**45 + 1, np.array([1, 0]), np.array([], dtype=np.int64)])
def test_scales_off_the_grid_are_refused(scale):
    with pytest.raises(InputError, match="std"):
        rounded_gaussian(SeededNoise(0), scale, 2)
    with pytest.raises(InputError, match="scale"):
        rounded_laplace(SeededNoise(0), scale, 2)


def test_impossible_requests_name_the_parameter():
    scores, labels = np.array([1, 2]), np.array([0, 1])
    for k in (0, 3):
        with pytest.raises(InputError, match="k must"):
            gumbel_argtop(SeededNoise(0), scores, 1.0, k)
    for scale in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="scale"):
            gumbel_argtop(SeededNoise(0), scores, scale, 1)
    with pytest.raises(InputError, match="k must"):
        randomised_response(SeededNoise(0), labels, 1, 1.0)
    for epsilon in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="epsilon"):
            randomised_response(SeededNoise(0), labels, 2, epsilon)
