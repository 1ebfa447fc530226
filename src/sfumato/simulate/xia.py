"""Models M1-M4 of Xia, Zhang and Cai, "Differentially private sliced inverse regression"."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

import numpy as np
from scipy.linalg import cholesky_banded
from scipy.signal import lfilter

from sfumato.errors import InputError
from sfumato.typing import FloatArray, IntArray

Seed = int | np.random.Generator | None


@dataclass(frozen=True, slots=True)
class Sample:
    """Simulated records and the truth behind them.

    Attributes
    ----------
    x : ndarray, (n, p)
    y : ndarray, (n,)
    directions : ndarray, (k, p)
        Orthonormal rows that span the central subspace: what an estimator's `directions_` should span.

    Examples
    --------
    >>> from sfumato.simulate import xia
    >>> sample = xia("M3", n=100, p=5, random_state=0)
    >>> sample.x.shape, sample.y.shape, sample.directions.shape
    ((100, 5), (100,), (2, 5))
    """

    x: FloatArray
    y: FloatArray | IntArray
    directions: FloatArray


def xia(
    model: Literal["M1", "M2", "M3", "M4"],
    n: int,
    p: int,
    *,
    version: Literal["newest", "first"] = "newest",
    high_dimensional: bool = False,
    random_state: Seed = None,
) -> Sample:
    """Draw from model M1, M2 (one direction), M3 or M4 (two) of the DP-SIR paper.

    With b1, ..., b4 zero but for their first two entries and e standard normal::

        M1   y = b1'x + e                      M3   y = 25 b3'x / {1 + (b4'x + 1)^2} + 0.1 e
        M2   y = exp(b2'x) + e                 M4   y = sin(b3'x) exp(b4'x + e)

    x is normal with mean 0 and variance 0.25; then every entry is truncated.

    Parameters
    ----------
    model : {"M1", "M2", "M3", "M4"}
    n, p : int
        Records and features; p is at least 2.
    version : {"newest", "first"}, default="newest"
        Of the paper. "newest": correlations 0.5^|i-j|, entries within [-1.5, 1.5]. "first": the same
        correlations up to |i-j| = 2 and zero beyond, entries within [-1, 1].
    high_dimensional : bool, default=False
        Draws the non-zero entries of b from (-10, -5) instead of (-10, 10), as the newest version does in its
        sparse studies. The first version always uses (-10, 10).
    random_state : int, numpy Generator or None
        Also draws the coefficients: each call is one replication of the paper's studies.

    Returns
    -------
    Sample

    Notes
    -----
    "Truncate the entries" is read as: move an entry outside the interval to its nearer end. With it ordinary
    SIR has the mean loss the newest version prints for M1 and M2. It does not for M4: coefficients this large
    make the sine turn several times within the range of x, and SIR's mean loss with k = 2, n = 30,000, p = 10
    and 20 slices is about 0.7 where the paper prints 0.195.

    Examples
    --------
    >>> sample = xia("M1", n=1000, p=4, random_state=1)
    >>> float(abs(sample.x).max())
    1.5
    >>> sample.directions.round(2)
    array([[0.03, 1.  , 0.  , 0.  ]])
    """
    check_choice("model", model, ("M1", "M2", "M3", "M4"))
    check_choice("version", version, ("newest", "first"))
    check_count("n", n, 1)
    check_count("p", p, 2)
    rng = np.random.default_rng(random_state)
    upper = -5.0 if high_dimensional and version == "newest" else 10.0
    b = np.zeros((4, p))
    b[:, :2] = rng.uniform(-10.0, upper, (4, 2))
    z = rng.standard_normal((n, p))
    x = np.clip(0.5 * ar1(z), -1.5, 1.5) if version == "newest" else np.clip(0.5 * _banded(z), -1.0, 1.0)
    e = rng.standard_normal(n)
    used = {"M1": b[:1], "M2": b[1:2]}.get(model, b[2:])
    return Sample(x, _response(model, used @ x.T, e), orthonormal(used))


def _response(model: str, index: FloatArray, e: FloatArray) -> FloatArray:
    first: FloatArray = index[0]
    last: FloatArray = index[-1]
    if model == "M1":
        return first + e
    if model == "M2":
        return np.exp(first) + e
    if model == "M3":
        return 25.0 * first / (1.0 + (last + 1.0) ** 2) + 0.1 * e
    return np.sin(first) * np.exp(last + e)


def ar1(z: FloatArray) -> FloatArray:
    """Rows of white noise made into rows with correlations 0.5^|i-j|, in O(np).

    Examples
    --------
    >>> import numpy as np
    >>> mixing = ar1(np.eye(3)).T
    >>> (mixing @ mixing.T).round(12)
    array([[1.  , 0.5 , 0.25],
           [0.5 , 1.  , 0.5 ],
           [0.25, 0.5 , 1.  ]])
    """
    driven = np.sqrt(0.75) * z
    driven[:, 0] = z[:, 0]  # starts in the stationary law
    return np.asarray(lfilter([1.0], [1.0, -0.5], driven, axis=1))


def _banded(z: FloatArray) -> FloatArray:
    """White noise made into rows with correlations 1, 1/2, 1/4, 0, 0, ... by the banded Cholesky factor."""
    p = z.shape[1]
    factor = cholesky_banded(np.outer([1.0, 0.5, 0.25], np.ones(p))[: min(3, p)], lower=True)
    x = z * factor[0]
    for lag in range(1, len(factor)):
        x[:, lag:] += z[:, :-lag] * factor[lag, :-lag]
    return np.asarray(x)


def orthonormal(rows: FloatArray) -> FloatArray:
    """Orthonormal rows with the same span, the first along the first."""
    q, r = np.linalg.qr(rows.T)
    return np.asarray((q * np.sign(np.diag(r))).T)


def check_choice(name: str, given: object, known: Sequence[str]) -> None:
    """Refuse a name that is not known, and say which are."""
    if given in known:
        return
    near = get_close_matches(str(given).upper(), [k.upper() for k in known], n=1)
    hint = next((f"; did you mean {k!r}?" for k in known if [k.upper()] == near), ".")
    raise InputError(f"{name} must be one of {', '.join(map(repr, known))}, got {given!r}{hint}")


def check_count(name: str, given: object, least: int) -> None:
    """Refuse what is not an integer of at least `least`."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise InputError(f"{name} must be an integer of at least {least}, got {given!r}.")
