"""Exact noise from random bits, vectorised.

Textbook samplers round: their floats have holes in the low bits (Mironov 2012), and no proof about the real
distribution covers them. Here a uniform number is an *interval* that random bits narrow lazily (Karney 2016).
Floats with an error bound decide almost every draw; where the bound leaves a doubt, further bits and mpmath's
arbitrary precision (its libmp layer: no global state, so safe in threads) decide that one draw. It is exact.

The additive samplers see public scales only, never a data value: the caller adds the integers they return.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache, cmp_to_key, partial
from typing import Any, ClassVar, NoReturn, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from sfumato.errors import InputError

Ints = NDArray[np.int64]
Shape = int | tuple[int, ...]
_LARGEST_SCALE = 2**45  # times the largest float quantile, 44, is below 2**53: x - rint(x) is exact
_HALF = np.uint64(2**63)
_MOST_BITS = 2**12  # no honest source leaves a doubt for so long: probability below 2**-4000


@cache
def _arithmetic() -> Any:
    """mpmath's libmp, imported when a draw is first in doubt: it takes longer than most fits draw."""
    from mpmath import libmp

    return libmp


class Noise(ABC):
    """A source of independent, uniform 64-bit words. `rehearsal` is False only if nobody can repeat them."""

    rehearsal: ClassVar[bool] = True

    @abstractmethod
    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` fresh words."""

    def begin(self, line: str) -> None:  # noqa: B027 - most sources do not care
        """Told which line of a plan the next words are for."""


@final
class SecureNoise(Noise):
    """The operating system's entropy. Without state: safe in forks and threads, and pickles to nothing.

    >>> SecureNoise().words(3).shape
    (3,)
    """

    rehearsal: ClassVar[bool] = False

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


@final
class SeededNoise(Noise):
    """Repeatable words (Philox), for rehearsal and tests only: whoever knows the seed subtracts the noise.

    >>> bool((SeededNoise(7).words(9) == SeededNoise(7).words(9)).all())
    True
    """

    def __init__(self, seed: int) -> None:
        self._stream = np.random.Philox(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._stream.random_raw(count)

    def __reduce__(self) -> NoReturn:
        raise TypeError("SeededNoise cannot be pickled or copied: its state would reveal the noise.")


class _Uniform:
    """A uniform number of [0, 1), so far known to lie in [value, value + 1) / 2**bits."""

    def __init__(self, noise: Noise, word: int) -> None:
        self.noise, self.value, self.bits = noise, word, 64

    def extend(self) -> None:
        if self.bits >= _MOST_BITS:
            raise RuntimeError("noise returned impossibly regular words; use SecureNoise or SeededNoise.")
        self.value, self.bits = self.value << 64 | int(self.noise.words(1)[0]), self.bits + 64

    def below(self, real: Callable[[int], int]) -> bool:
        """Whether the number is less than a real one, given as real(b) = real * 2**b, at most 4 off."""
        while True:
            bar = real(self.bits + 16)
            if self.value + 1 << 16 <= bar - 4:
                return True
            if self.value << 16 >= bar + 4:
                return False
            self.extend()

    def gumbel(self) -> Any:
        """An interval (mpmath, rounded outward) that holds -log(-log(1 - u))."""
        libmp, wide, top = _arithmetic(), self.bits + 64, (1 << self.bits) - self.value
        rest = (libmp.from_man_exp(top - 1, -self.bits), libmp.from_man_exp(top, -self.bits))
        return libmp.mpi_neg(libmp.mpi_log(libmp.mpi_neg(libmp.mpi_log(rest, wide)), wide))


def _gaussian_tail(p: int, q: int, bits: int) -> int:
    """P(Z > p/q) * 2**bits."""
    libmp, wide = _arithmetic(), bits + 32
    root = libmp.mpf_sqrt(libmp.from_int(2), wide)
    x = libmp.mpf_div(libmp.from_rational(p, q, wide), root, wide)
    return int(libmp.to_fixed(libmp.mpf_erfc(x, wide), bits - 1))


def _laplace_tail(p: int, q: int, bits: int) -> int:
    """P(L > p/q) * 2**bits."""
    libmp, wide = _arithmetic(), bits + 32
    return int(libmp.to_fixed(libmp.mpf_exp(libmp.from_rational(-p, q, wide), wide), bits - 1))


_Law = tuple[Callable[[Any], Any], Callable[[int, int, int], int]]  # float quantile of log u, exact tail
_GAUSSIAN: _Law = (lambda log_u: -ndtri_exp(log_u), _gaussian_tail)
_LAPLACE: _Law = (lambda log_u: -(log_u + math.log(2.0)), _laplace_tail)


def _settle(u: _Uniform, scale: int, law: _Law) -> int:
    """rint(scale * x) where x is exceeded with probability u."""
    while u.value.bit_length() < 32:  # far in the tail: too few bits to guess from
        u.extend()
    log_u = math.log(2 * u.value + 1) - (u.bits + 1) * math.log(2.0)
    n = max(0, round(scale * float(law[0](log_u))))  # a guess, which the two loops prove or mend
    while u.below(partial(law[1], 2 * n + 1, 2 * scale)):
        n += 1
    while n and not u.below(partial(law[1], 2 * n - 1, 2 * scale)):
        n -= 1
    return n


def _rounded(noise: Noise, name: str, scale: Ints | int, shape: Shape, law: _Law) -> Ints:
    given = np.asarray(scale)
    if given.dtype.kind not in "iu" or given.size == 0 or given.min() < 1 or given.max() > _LARGEST_SCALE:
        raise InputError(f"{name} must be integers from 1 to 2**45, got {scale!r}; choose another grid.")
    scales = np.broadcast_to(given.astype(np.int64), shape).ravel()
    words = noise.words(scales.size)
    m = words & (_HALF - np.uint64(1))  # without the sign bit: u lies in [m, m + 1) / 2**64, below 1/2
    x = law[0](np.log((m + 0.5) * 2.0**-64))
    # |dx/du| <= sqrt(pi/2)/u (Mills' ratio; Laplace: 1/u): half an interval moves x by less than 0.63/m.
    # Rounding u, log u and x, with ndtri_exp, moves it by less than 1e-15 (1 + x) (tested): ten times that.
    error = scales * (1e-13 * np.abs(x) + 1e-14 + 1.0 / np.maximum(m, 1))
    x = scales * x
    result: Ints = np.rint(x).astype(np.int64)
    for i in np.flatnonzero(0.5 - np.abs(x - result) <= error):  # always where m = 0: x is unbounded there
        result[i] = _settle(_Uniform(noise, int(m[i])), int(scales[i]), law)
    return np.where(words >= _HALF, -result, result).reshape(shape)


def rounded_gaussian(noise: Noise, std: Ints | int, shape: Shape) -> Ints:
    """Exact draws of rint(std * Z), Z standard normal; `std` from 1 to 2**45 in units of the grid, broadcast.

    For an integer v, v + rint(std Z) = rint(v + std Z): to add this noise to integers *is* to round the
    output of an ideal Gaussian mechanism. By post-processing, integer sums of L2 sensitivity D keep the full
    (D/std)-GDP guarantee (Dong, Roth and Su 2022), with no correction for discreteness.

    >>> rounded_gaussian(SeededNoise(7), 2**20, (2, 3)).shape
    (2, 3)
    """
    return _rounded(noise, "std", std, shape, _GAUSSIAN)


def rounded_laplace(noise: Noise, scale: Ints | int, shape: Shape) -> Ints:
    """Exact draws of rint(scale * L), L standard Laplace: (D/scale)-DP for integers of L1 sensitivity D.

    >>> rounded_laplace(SeededNoise(7), 1000, 3).dtype
    dtype('int64')
    """
    return _rounded(noise, "scale", scale, shape, _LAPLACE)


def _ahead(lead: int, scale: float, a: _Uniform, b: _Uniform) -> int:
    """The sign of lead/scale + gumbel(a) - gumbel(b)."""
    libmp = _arithmetic()
    head, unit = libmp.from_int(lead), libmp.from_float(scale)
    while True:
        wide = a.bits + 64
        shift = libmp.mpi_div((head, head), (unit, unit), wide)
        low, high = libmp.mpi_add(libmp.mpi_sub(a.gumbel(), b.gumbel(), wide), shift, wide)
        slack = libmp.from_man_exp(1, 32 - wide)  # libmp's logarithm may miss the outward rounding by an ulp
        if libmp.mpf_gt(low, slack) or libmp.mpf_lt(high, libmp.mpf_neg(slack)):
            return int(libmp.mpf_sign(low))
        a.extend()
        b.extend()


def gumbel_argtop(noise: Noise, scores: Ints, scale: float, k: int) -> Ints:
    """Indices of the k largest of scores + scale * Gumbel, largest first; exact.

    Distributed as k exponential mechanisms without replacement (Durfee and Rogers 2019). If one record moves
    every score by at most D, each pick has a bounded range of 2D/scale; of D/scale if all move the same way.

    >>> gumbel_argtop(SeededNoise(7), np.array([0, 10**6, 0, 10**9]), 1.0, 2).tolist()
    [3, 1]
    """
    if not 1 <= k <= scores.size:
        raise InputError(f"k must be from 1 to the number of scores, got k={k}; choose a smaller k.")
    if not 1e-200 <= scale <= 1e200:
        raise InputError(f"scale must be a positive number, got scale={scale}; choose for instance scale=1.")
    gap = scores.max().astype(np.uint64) - scores.astype(np.uint64)  # modulo 2**64, so exact for every int64
    words = noise.words(scores.size)
    tail = np.minimum(words, ~words)
    v = (tail + 0.5) * 2.0**-64
    key = -np.log(np.where(words < _HALF, -np.log1p(-v), -np.log(v))) - gap / scale  # accurate in both tails
    # Half an interval of u moves log E by at most 1/tail, float rounding by less than 1e-13 + 4 ulp.
    error = np.where(tail == 0, 1e300, 1e-13 + 1e-15 * (gap / scale) + 2.0 / np.maximum(tail, 1))
    bar = np.partition(key - error, -k)[-k]  # the k-th largest at worst: only who may reach it runs
    u = {int(i): _Uniform(noise, int(words[i])) for i in np.flatnonzero(key + error >= bar)}

    def compare(i: int, j: int) -> int:
        if abs(key[i] - key[j]) > error[i] + error[j]:
            return 1 if key[i] > key[j] else -1
        return _ahead(int(gap[j]) - int(gap[i]), scale, u[i], u[j])

    return np.array(sorted(u, key=cmp_to_key(compare), reverse=True)[:k], dtype=np.int64)


def _lie(k: int, epsilon: float, bits: int) -> int:
    """(k - 1) / (e^epsilon + k - 1) * 2**bits."""
    libmp, wide = _arithmetic(), bits + 32
    others = libmp.from_int(k - 1)
    whole = libmp.mpf_add(libmp.mpf_exp(libmp.from_float(epsilon), wide), others, wide)
    return int(libmp.to_fixed(libmp.mpf_div(others, whole, wide), bits))


def _below(noise: Noise, m: int, count: int) -> Ints:
    """Uniform integers of [0, m); words beyond the last multiple of m are drawn again: no modulo bias."""
    words, last = noise.words(count).copy(), np.uint64(2**64 - 1 - 2**64 % m)
    while (again := np.flatnonzero(words > last)).size:
        words[again] = noise.words(again.size)
    return (words % np.uint64(m)).astype(np.int64)


def randomised_response(noise: Noise, labels: Ints, k: int, epsilon: float) -> Ints:
    """Each label kept with probability e^eps / (e^eps + k - 1), else uniformly another; exact and eps-DP.

    Labels are read modulo k, so no label raises an error; the words consumed do not depend on the labels.

    >>> randomised_response(SeededNoise(7), np.array([0, 1, 2]), 3, 50.0).tolist()
    [0, 1, 2]
    """
    if not 2 <= k <= 2**32:
        raise InputError(f"k must be from 2 to 2**32, got k={k}; give the number of classes.")
    if not 0 < epsilon <= 1e6:
        raise InputError(f"epsilon must be from 0 to 1e6, got epsilon={epsilon}; choose for instance 1.")
    words, lie = noise.words(labels.size), partial(_lie, k, float(epsilon))
    lies = words < (bar := np.uint64(lie(64)))
    for i in np.flatnonzero(np.minimum(words - bar, bar - words) <= 8):
        lies[i] = _Uniform(noise, int(words[i])).below(lie)
    step = lies * (1 + _below(noise, k - 1, labels.size))
    return (labels % k + step.reshape(labels.shape)) % k
