"""Models I-V of He, Zhang and Chen, sliced inverse regression in the federated paradigm (FSIR)."""

from typing import Literal

import numpy as np

from sfumato.errors import InputError
from sfumato.simulate.xia import Sample, Seed, ar1, check_choice, check_count, orthonormal
from sfumato.typing import FloatArray, IntArray


def he(
    model: Literal["I", "II", "III", "IV", "V"],
    n: int,
    p: int = 10,
    *,
    sparse: bool | int = False,
    as_printed: bool = False,
    noise: float = 1.0,
    random_state: Seed = None,
) -> Sample:
    """Draw from model I, II (one direction), III, IV or V (two) of the FSIR paper.

    With unit vectors b1, b2 and standard normal e::

        I     y = 1 if 1 / {1 + exp(b1'x)} > 0.5, else 0        x ~ N(0, I)
        II    y = 1 / {0.5 + (b1'x + 1)^2} + e                  x ~ N(0, S), S_ij = 0.5^|i-j|
        III   y = b1'x / {(b2'x)^3 + 1} + e                     x ~ N(0, I)
        IV    y = sin(b1'x) exp(b2'x + e)                       x ~ N(0, S)
        V     y ~ N(0, 1),  x = b1 y + b2 y^2 + N(0, I)

    Parameters
    ----------
    model : {"I", "II", "III", "IV", "V"}
    n : int
        Records.
    p : int, default=10
        Features; at least 2, or as many as are active if `sparse`.
    sparse : bool or int, default=False
        False: every feature counts. In I and II the entries of b1 are drawn from (0.4, 0.8); in III to V b1
        covers the first half of the features and b2 the rest, evenly.
        True: only the first s features count, s = 5 up to p = 500 and 10 beyond; a number is s itself.
    as_printed : bool, default=False
        Follow the paper to the letter where it contradicts itself (see Notes).
    noise : float, default=1.0
        Standard deviation of e in models II, III and IV.
    random_state : int, numpy Generator or None
        Also draws b1 in models I and II.

    Returns
    -------
    Sample
        `y` holds integers 0 and 1 in model I.

    Notes
    -----
    The paper prints b1 in the denominator of model III too, which leaves one direction where its text says
    two; and for sparse III to V it lets b2 cover features s - ceil(s/2) to s, which overlap those of b1 where
    its text says orthogonal. Here b2 stands in the denominator and covers the active features that b1 leaves;
    `as_printed=True` gives the printed versions. The paper's own figures for model III fit ``noise=0.5``
    (benchmarks/results/fsir-model-three.md). Model I has no noise although the text speaks of logistic
    regression: y is 1 exactly if b1'x < 0.

    Examples
    --------
    >>> he("V", n=100, random_state=0).directions.round(2)[:, 3:7]
    array([[0.45, 0.45, 0.  , 0.  ],
           [0.  , 0.  , 0.45, 0.45]])
    >>> he("III", n=100, as_printed=True, random_state=0).directions.shape
    (1, 10)
    """
    check_choice("model", model, ("I", "II", "III", "IV", "V"))
    check_count("n", n, 1)
    check_count("p", p, 2)
    if not 0.0 <= noise < float("inf"):
        raise InputError(f"noise must be a finite number that is not negative, got {noise!r}.")
    rng = np.random.default_rng(random_state)
    active = p if not sparse else _active(p) if sparse is True else int(sparse)
    if active > p:
        raise InputError(f"p must be at least {active} when sparse={sparse!r}, got {p}.")
    b = _drawn(rng, p, active) if model in ("I", "II") else _even(p, active, overlap=bool(sparse) and as_printed)
    if model == "III" and as_printed:
        b = b[:1]
    z = rng.standard_normal((n, p))
    e = rng.standard_normal(n)
    if model in ("II", "III", "IV"):
        e = noise * e
    if model == "V":
        return Sample(np.column_stack([e, e**2]) @ b + z, e, orthonormal(b))
    x = ar1(z) if model in ("II", "IV") else z
    return Sample(x, _response(model, b @ x.T, e), orthonormal(b))


def _active(p: int) -> int:
    """The paper's number of features that count."""
    return 5 if p <= 500 else 10


def _drawn(rng: np.random.Generator, p: int, active: int) -> FloatArray:
    b = np.zeros((1, p))
    b[0, :active] = rng.uniform(0.4, 0.8, active)
    return np.asarray(b / np.linalg.norm(b))


def _even(p: int, active: int, overlap: bool) -> FloatArray:
    """b1 on the first part of the active features, b2 on the rest (or where the paper's indices put it)."""
    first = (active + 1) // 2
    b = np.zeros((2, p))
    b[0, :first] = 1.0
    b[1, (active - first - 1 if overlap else first) : active] = 1.0
    return np.asarray(b / np.linalg.norm(b, axis=1, keepdims=True))


def _response(model: str, index: FloatArray, e: FloatArray) -> FloatArray | IntArray:
    first: FloatArray = index[0]
    last: FloatArray = index[-1]
    if model == "I":
        return (1.0 / (1.0 + np.exp(first)) > 0.5).astype(np.int64)
    if model == "II":
        return 1.0 / (0.5 + (first + 1.0) ** 2) + e
    if model == "III":
        return first / (last**3 + 1.0) + e
    return np.sin(first) * np.exp(last + e)
