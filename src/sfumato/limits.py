"""What no method can beat, and what the papers prove of theirs: bounds as functions, each with its conditions.

A `Limit` is a rate (its order in n, p, epsilon) unless `constant_known`, in which case its value is itself a bound.
Losses are squared, as in the theorems: ``E ||P - P_hat||_F^2`` for subspaces, ``E |theta - theta_hat|^2`` for
coefficients, ``E (1 - cos)`` for the eigenvectors of DP-GEP. `root` is on the scale of `subspace_distance`. Where a
printed rate is wrong the function has the corrected one and says so (docs/explanation/errata.md).

Lower bounds: `sir`, `sparse_sir`, `sparse_pca`, `sir_zcdp`, `pca`, `local_regression`, `local_sum`,
`label_regression`, `label_direction`. Upper bounds end in ``_upper``; theorems that state no rate are functions that
end in ``_terms``: what must vanish, by name.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

from sfumato.errors import InputError

LOCAL_EPSILON = 23 / 35
"""Largest epsilon of the theorems of Wang, Smith and Xu (2018)."""
_NEAR = "a start within a constant of the truth"


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a squared loss, split in what records cost and what privacy costs.

    Attributes
    ----------
    sampling, privacy : float
        The two terms; the bound is their sum.
    holds : bool
        Whether the theorem's conditions are met (up to unknown constants, taken to be 1).
    source, conditions : str
        Where it is proved, and under what.
    constant_known : bool
        False: a rate. Divide two of them to compare settings; do not read one as a loss.
    side : {"lower", "upper"}
        What no method beats, or what a method is proved to reach.
    """

    sampling: float
    privacy: float
    holds: bool
    source: str
    conditions: str
    constant_known: bool = False
    side: Literal["lower", "upper"] = "lower"

    @property
    def value(self) -> float:
        """Both terms together."""
        return self.sampling + self.privacy

    @property
    def root(self) -> float:
        """On the scale of a distance."""
        return math.sqrt(self.value)


def sir(n: float, p: float, epsilon: float, delta: float, eigengap: float = 1.0) -> Limit:
    """DP-SIR: ``p / (lambda n) + p^2 / (lambda n^2 eps^2)`` (Xia, Zhang and Cai, Theorem 1, corrected).

    Printed is ``1 / lambda^2``. The proof bounds the loss of the linear model with noise of variance v below by ``v
    (p / n + p^2 / (n^2 eps^2))`` and then puts lambda of order ``1 / sqrt(v)``, from Mills ratios averaged over the law
    of the noise before y is known to lie in a slice; given that, lambda is ``phi(c)^2 / (Phi(c) (1 - Phi(c))) / (1 +
    v)`` for slices cut at c standard deviations, of order 1 / v. So the bound has 1 / lambda, as the rate
    that Lin, Li, Huang and Liu (2021, Annals of Statistics 49) prove attained and optimal for single-index models
    without privacy.

    >>> sir(n=20_000, p=15, epsilon=0.5, delta=1e-6).holds
    True
    """
    return _inverse_regression(p, n, epsilon, delta, eigengap, "Theorem 1", "p")


def sparse_sir(n: float, p: float, s: float, epsilon: float, delta: float, eigengap: float = 1.0) -> Limit:
    """Sparse DP-SIR: ``s log p / (lambda n) + (s log p)^2 / (lambda n^2 eps^2)`` (the same, Theorem 4, corrected)."""
    _positive(p=p, s=s)
    size = s * math.log(max(p, 2.0))
    return _inverse_regression(size, n, epsilon, delta, eigengap, "Theorem 4", "s log p")


def sparse_pca(n: float, p: float, s: float, epsilon: float, delta: float) -> Limit:
    """Sparse components: ``s log p / n + (s log p)^2 / (n^2 eps^2)`` (the same, appendix A, for a constant gap)."""
    _positive(p=p, s=s)
    size = s * math.log(max(p, 2.0))
    return _inverse_regression(size, n, epsilon, delta, 1.0, "appendix A", "s log p")


def local_regression(n: float, p: float, epsilon: float, *, s: float = 1.0, interactive: bool = False) -> Limit:
    """x and y both local: ``min(1, s p log p / (n eps^2))``, without the log if interactive.

    For one active feature Wang, Smith and Xu, Theorems 1 and 2; for s of them Zhu, Ding, Aggarwal, Xu and Wang (2024,
    arXiv 2310.07367). In high dimension there is nothing to be had when x is private too. With x uniform on the signs,
    as in the theorems, ``E x x'`` is the identity, so that what the mean squared error of prediction exceeds the least
    one by is the same loss: these are bounds of the paper's optimisation error, too.

    >>> local_regression(1e6, 50, 0.5, s=4).value / local_regression(1e6, 50, 0.5).value
    4.0
    """
    _positive(n=n, p=p, s=s, epsilon=epsilon)
    factor = s if interactive else s * math.log(max(p, 2.0))
    if s > 1:
        source, kind = "Zhu, Ding, Aggarwal, Xu and Wang", "sequentially interactive" if interactive else "one answer"
        conditions = f"local epsilon-DP, {kind}, sub-Gaussian records"
        return Limit(0.0, min(1.0, p * factor / (n * epsilon**2)), epsilon <= 1, source, conditions)
    name = "Theorem 2, sequentially interactive" if interactive else "Theorem 1, non-interactive"
    return _local(p * factor / (n * epsilon**2), epsilon, name)


def local_sum(n: float, p: float, epsilon: float) -> Limit:
    """Even the sum of the coefficients: ``|1^T (theta - theta_hat)|^2`` at least ``min(1, p / (n eps^2))`` (Thm. 3)."""
    _positive(n=n, p=p, epsilon=epsilon)
    return _local(p / (n * epsilon**2), epsilon, "Theorem 3, sequentially interactive")


def label_regression(n: float, p: float, s: float, epsilon: float, noise_bound: float = 1.0) -> Limit:
    """Only y local: ``min(1, C^2 s log(p / s) / (n eps^2))`` (the same, Theorem 5); DP-IHT attains the rate."""
    _positive(n=n, p=p, s=s, epsilon=epsilon, noise_bound=noise_bound)
    size = s * math.log(max(p / s, math.e))
    return _local(noise_bound**2 * size / (n * epsilon**2), epsilon, "Theorem 5, labels only, non-interactive")


def pca(n: float, p: float, *, epsilon: float | None = None, rho: float | None = None, s: float | None = None) -> Limit:
    """Leading eigenvector, ``E (1 - cos)``: Theorems 9 and 10 of the DP-GEP paper, by epsilon (pure) or rho (zCDP)."""
    return _eigenvector(n, p, epsilon, rho, s, "Theorem 9" if s is None else "Theorem 10")


def sir_zcdp(n: float, p: float, rho: float, s: float | None = None) -> Limit:
    """SIR with two classes, ``E (1 - cos)``: ``p / n + p / (n^2 rho)`` (DP-GEP, Theorem 11; sparse: 12)."""
    return _eigenvector(n, p, None, rho, s, "Theorem 11" if s is None else "Theorem 12")


def label_direction(n: float, p: float, epsilon: float, signal: float = 0.5) -> Limit:
    """One direction from labels randomised on the devices, x public: a bound with its constant.

    For ``y = b'x + e``, x and e normal, R squared `signal`, a label carries Fisher information ``signal / (1 -
    signal)`` about each direction across b (whitened x). An epsilon-DP channel keeps at most ``tanh(epsilon / 2)^2``
    of it (below). By Hajek and Le Cam no method has an asymptotic local worst case of ``E ||P - P_hat||_F^2`` below
    twice the trace of the inverse. epsilon = inf is the bound without privacy.

    *Proof of the contraction.* Let z be the answer, q(z | y) the channel, q(z) its mean over y, and s(y) the score,
    of mean zero. The information left in z is ``E (E[s | z])^2 = E s(y) s(y') K(y, y')`` over independent y, y', with
    ``K = E_z w w'``, ``w = q(z | y) / q(z)``, and ``E_z w = 1``. The ratio of w and w' is within ``e^(+-eps)``, so ``w
    w' >= c (w + w')^2`` with ``c = e^eps / (1 + e^eps)^2``, and ``K >= c (E_z (w + w'))^2 = 4 c = 1 - tanh(eps / 2)^2``
    everywhere. A constant adds nothing to the mean, s having mean zero, so K may be replaced by ``K - 4 c >= 0``, of
    mean ``tanh(eps / 2)^2`` over y'; with ``s s' <= (s^2 + s'^2) / 2`` the information is at most ``tanh(eps / 2)^2 E
    s^2``. The channel may depend on x and on earlier answers. Randomised response on a fair coin attains it: no
    smaller constant holds for all channels (it is the contraction coefficient of Asoodeh and Zhang 2024, IEEE Trans.
    Inf. Theory, found there by another way).

    >>> round(label_direction(20_000, 15, 1.0, 0.5).root, 3), round(label_direction(20_000, 15, math.inf, 0.5).root, 3)
    (0.081, 0.037)
    """
    _positive(n=n, p=p, epsilon=epsilon, signal=signal)
    if signal >= 1:
        raise InputError(f"signal must be below 1, got {signal!r}; without noise one record says everything.")
    plain = 2 * (p - 1) * (1 - signal) / (n * signal)
    total = plain / math.tanh(epsilon / 2) ** 2
    source = "Cramer-Rao with the contraction of an epsilon-DP channel"
    return Limit(plain, total - plain, True, source, "normal linear model, large n, labels local", True)


def sir_upper(n: float, p: float, epsilon: float, delta: float, eigengap: float = 1.0) -> Limit:
    """DP-SIR reaches ``p log n / (l^2 n) + p^2 log(1/delta) log^7 n / (l^2 n^2 eps^2)`` (the same, Theorem 2).

    Between it and `sir` lie logarithms and a factor 1 / lambda.
    """
    _positive(n=n, p=p, epsilon=epsilon, delta=delta, eigengap=eigengap)
    log_n, gap = math.log(max(n, math.e)), eigengap**2
    privacy = p**2 * math.log(1.0 / delta) * log_n**7 / (gap * n**2 * epsilon**2)
    sampling = p * log_n / (gap * n)
    return _reached(sampling, privacy, (sampling, privacy), n, eigengap, "Theorem 2", _NEAR)


def sir_start_upper(n: float, p: float, epsilon: float, delta: float, eigengap: float = 1.0) -> Limit:
    """DP-Ini reaches ``p / (lambda^2 n) + p^3 log(1/delta) / (lambda^2 n^2 eps^2)`` (the same, Theorem B.6)."""
    _positive(n=n, p=p, epsilon=epsilon, delta=delta, eigengap=eigengap)
    gap = eigengap**2
    sampling, privacy = p / (gap * n), p**3 * math.log(1.0 / delta) / (gap * n**2 * epsilon**2)
    return _reached(sampling, privacy, (sampling, privacy), n, eigengap, "Theorem B.6", "slices as in Lemma 2")


def sparse_sir_upper(n: float, p: float, s: float, epsilon: float, delta: float, eigengap: float = 1.0) -> Limit:
    """DP-SSIR: ``s log p log n / (l^2 n) + s^2 log^2 p log^7 n log(1/delta) / (l^2 n^2 eps^2)`` (Theorem 5).

    The theorem's conditions have log^2 n where its bound has log^7 n: they may hold where the bound says nothing.
    """
    _positive(n=n, p=p, s=s, epsilon=epsilon, delta=delta, eigengap=eigengap)
    size, log_n, gap = s * math.log(max(p, 2.0)), math.log(max(n, math.e)), eigengap**2
    noise = size**2 * math.log(1.0 / delta) / (gap * n**2 * epsilon**2)
    needed = size / (gap * n), noise * log_n**2
    sampling, privacy = size * log_n / (gap * n), noise * log_n**7
    return _reached(sampling, privacy, needed, n, eigengap, "Theorem 5", f"{_NEAR}, peels of order s")


def sparse_pca_upper(n: float, p: float, s: float, epsilon: float, delta: float) -> Limit:
    """Algorithm 3 for sparse components: the rate of `sparse_sir_upper` for a constant gap (the same, appendix A).

    >>> lower, upper = sparse_pca(1e6, 500, 3, 0.5, 1e-8), sparse_pca_upper(1e6, 500, 3, 0.5, 1e-8)
    >>> lower.value < upper.value
    True
    """
    return replace(sparse_sir_upper(n, p, s, epsilon, delta), source="Xia, Zhang and Cai, appendix A")


def sparse_sir_start_terms(
    n: float, p: float, s: float, epsilon: float, delta: float, eigengap: float = 1.0
) -> dict[str, float]:
    """What must vanish for DP-SIni to be consistent (Theorem B.7, which states no rate), by name.

    >>> max(sparse_sir_start_terms(2000, 2000, 2, 1.0, 1e-4).values()) < 0.1
    True
    """
    _positive(n=n, p=p, s=s, epsilon=epsilon, delta=delta, eigengap=eigengap)
    tail = math.log(1.0 / delta)
    return {
        "selection": math.sqrt(s * tail) * math.log(max(p, 2.0)) / (n * epsilon),
        "sampling": s / (n * eigengap**2),
        "privacy": s**3 * tail / (n**2 * eigengap**2 * epsilon**2),
    }


def sir_dimension_penalties(
    n: float, p: float, epsilon: float, delta: float, eigengap: float = 1.0
) -> tuple[float, float]:
    """Between which orders the penalty C_n of DP-BIC must lie for the number of directions to be found (Theorem 3).

    >>> low, high = sir_dimension_penalties(20_000, 15, 1.0, 1e-5)
    >>> low < 20_000 ** (2 / 3) < high
    True
    """
    _positive(n=n, p=p, epsilon=epsilon, delta=delta, eigengap=eigengap)
    return (p + p**3 * math.log(1.0 / delta) / (n * epsilon**2)) / eigengap**2, n


def rayleigh_flow_upper(
    n: float,
    p: float,
    rho: float | None = None,
    s: float | None = None,
    failure: float = 0.05,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    fixed_records: bool = False,
) -> Limit:
    """Rayleigh flow, ``1 - cos``: ``p log p / n + p log p log n / (n^2 rho)`` (DP-GEP, Theorem 4; s for p: Theorem 8).

    The eigen-gap, the Crawford number and the condition of B are taken as constants; `failure` is the probability
    with which the bound may not hold. `epsilon` and `delta` in place of rho are Corollary 1: rho is then ``eps^2 / (4
    log(1/delta))``. With `fixed_records` the truth is the eigenvector of the records themselves: no sampling term
    (their (13) and (22); discriminants, Corollary 3). The theorems ask for ``nu < 1/2``, which no step size meets; nu
    < 1 must be meant (docs/explanation/errata.md).

    >>> rayleigh_flow_upper(1e5, 50, epsilon=1.0, delta=1e-6).value == rayleigh_flow_upper(
    ...     1e5, 50, 1 / (4 * math.log(1e6))
    ... ).value
    True
    """
    if rho is None and epsilon is not None and delta is not None:
        _positive(epsilon=epsilon, delta=delta)
        rho = epsilon**2 / (4.0 * math.log(1.0 / delta))
    elif rho is None or epsilon is not None or delta is not None:
        raise InputError("either rho or both epsilon and delta must be given; for instance rho=0.5.")
    _positive(n=n, p=p, rho=rho, failure=failure)
    size, tail = (p if s is None else s) * math.log(max(p, 2.0)), math.log(1.0 / failure)
    privacy = size * math.log(max(n, math.e)) * tail / (n**2 * rho)
    conditions = "rho-zCDP, records of length at most one, a start within a constant of the truth, nu < 1"
    source = f"DP-GEP, Theorem {4 if s is None else 8}"
    return Limit(
        0.0 if fixed_records else size / n, privacy, n >= size and privacy <= 1.0, source, conditions, side="upper"
    )


def fsir_kernel_upper(
    n: float,
    p: float,
    slices: float,
    epsilon: float,
    delta: float,
    *,
    smallest: float | None = None,
    truncation: float = 1.0,
    stability: float = 1.0,
) -> Limit:
    """FSIR's kernel, spectral norm, *not* squared: ``H^-v + H^2 p / n + H sqrt(p / n)`` (He, Zhang, Chen, Theorem 4).

    v is the sliced `stability`. The theorem has no privacy term: it asks that ``n_0^2 eps^2 / (R^4 H^(2 v - 1) p^3
    log(2 / delta))`` be large, n_0 the `smallest` slice of a site (n / H by default). The directions converge if the
    covariance does, too (Theorem 6), for which ``p / n -> 0`` does not suffice: see `fsir_covariance_noise`.
    """
    _positive(n=n, p=p, slices=slices, epsilon=epsilon, delta=delta, truncation=truncation, stability=stability)
    sampling = slices**-stability + slices**2 * p / n + slices * math.sqrt(p / n)
    least = n / slices if smallest is None else smallest
    needed = truncation**4 * slices ** (2 * stability - 1) * p**3 * math.log(2.0 / delta)
    conditions = "spectral norm of the kernel; n_0^2 eps^2 large against R^4 H^(2v-1) p^3 log(2/delta)"
    holds = least**2 * epsilon**2 >= needed
    return Limit(sampling, 0.0, holds, "He, Zhang and Chen, Theorem 4", conditions, side="upper")


def fsir_terms(
    n: float, p: float, slices: float, epsilon: float, delta: float, *, truncation: float = 1.0, stability: float = 1.0
) -> dict[str, float]:
    """What must vanish for FSIR's directions to be consistent (He, Zhang and Chen, Theorem 6, corrected), by name.

    The last term is missing in the paper.

    >>> few, many = (max(fsir_terms(n, 10, n**0.1, 1.0, 1e-5).values()) for n in (1e6, 1e9))
    >>> many < few
    True
    """
    kernel = fsir_kernel_upper(n, p, slices, epsilon, delta, truncation=truncation, stability=stability)
    needed = truncation**4 * slices ** (2 * stability - 1) * p**3 * math.log(2.0 / delta)
    return {
        "kernel": kernel.value,
        "noise of the means": needed / ((n / slices) ** 2 * epsilon**2),
        "covariance": p / n,
        "noise of the covariance": fsir_covariance_noise(n, p, epsilon, delta),
    }


def fsir_sparse_terms(
    smallest: float, p: float, s: float, slices: float, sites: float, strength: float = 1.0
) -> dict[str, float]:
    """What must vanish for FSIR to be consistent in high dimension (Theorems 9 and 10), by name.

    The chances of `fsir_filter_failures`, and ``H log H`` against ``n_0 strength / H``, the smaller of the two numbers
    that the theorems name, its constants one.

    >>> list(fsir_sparse_terms(500, 1000, 5, 6, 10))
    ['missed', 'kept', 'slices']
    """
    missed, kept = fsir_filter_failures(smallest, p, s, slices, sites, strength)
    return {"missed": missed, "kept": kept, "slices": slices**2 * math.log(max(slices, 2.0)) / (smallest * strength)}


def fsir_covariance_noise(n: float, p: float, epsilon: float, delta: float) -> float:
    """Spectral norm of the noise of FSIR's covariance, about ``2 sqrt(p)`` times its standard deviation.

    It is of order ``p^(3/2) / (n eps)``. Lemma 5 and Theorem 6 ask for ``p / n -> 0`` only:

    >>> small, large = (fsir_covariance_noise(n, n**0.8, 1.0, 1e-5) for n in (1e4, 1e8))
    >>> small < large
    True
    """
    _positive(n=n, p=p, epsilon=epsilon, delta=delta)
    inner = max(2.0 * math.log((p * p + p) / (2.0 * delta * math.sqrt(2.0 * math.pi))), 0.0)
    return 2.0 * math.sqrt(p) * ((p + 1.0) / (n * epsilon) * math.sqrt(inner) + 1.0 / (n * math.sqrt(epsilon)))


def fsir_filter_failures(
    smallest: float, p: float, s: float, slices: float, sites: float, strength: float = 1.0
) -> tuple[float, float]:
    """Chances that the CCMD filter misses a feature that counts, and keeps one that does not (Theorem 8, corrected).

    ``s K^(3/2) (K^2 q / e^2)^(K/2)`` with ``q = H exp(-n_0 strength / H)`` and all constants one; `strength` is the
    least variance of ``E(x_j | y)``. For the second the paper prints p_1 and s where p_2 and p - s belong. With both
    small Theorems 9 and 10 say that FSIR in high dimension is consistent.

    >>> missed, kept = fsir_filter_failures(500, 1000, 5, 6, 10)
    >>> kept > missed
    True
    """
    _positive(smallest=smallest, p=p, s=s, slices=slices, sites=sites, strength=strength)
    one_site = slices * math.exp(-smallest * strength / slices)
    each = sites**1.5 * (sites**2 * one_site / math.e**2) ** (sites / 2.0)
    return min(1.0, s * each), min(1.0, max(p - s, 0.0) * each)


def label_regression_upper(
    n: float, p: float, s: float, epsilon: float, delta: float, *, steps: int = 50, noise_bound: float = 1.0
) -> Limit:
    """DP-IHT reaches ``4^-T + C^2 s log p log(1/delta) / (n eps^2)`` (Wang, Smith and Xu, Theorem 4, squared).

    The first term is what T steps leave to optimise, relative to the length of theta; it is under `sampling`. Printed
    is log(1/delta) for its root, before squaring.
    """
    _positive(n=n, p=p, s=s, epsilon=epsilon, delta=delta, noise_bound=noise_bound, steps=steps)
    privacy = noise_bound**2 * s * math.log(max(p, 2.0)) * math.log(1.0 / delta) / (n * epsilon**2)
    conditions = "labels local, restricted isometry with parameter 17 s, epsilon at most 1"
    return Limit(4.0**-steps, privacy, epsilon <= 1, "Wang, Smith and Xu, Theorem 4", conditions, side="upper")


def _inverse_regression(
    size: float, n: float, epsilon: float, delta: float, eigengap: float, name: str, words: str
) -> Limit:
    _positive(n=n, p=size, epsilon=epsilon, delta=delta, eigengap=eigengap)
    return Limit(
        size / (eigengap * n),
        (size / (n * epsilon)) ** 2 / eigengap,
        size <= n * epsilon * eigengap and epsilon < 1 and delta < 1 / n,
        f"Xia, Zhang and Cai, {name}",
        f"(epsilon, delta)-DP, epsilon < 1, delta below n^-(1 + gamma), {words} of order at most n epsilon lambda",
    )


def _reached(
    sampling: float, privacy: float, needed: tuple[float, float], n: float, eigengap: float, name: str, more: str
) -> Limit:
    """An upper bound of Xia, Zhang and Cai; `needed` are the two terms that the theorem asks to be small."""
    conditions = f"bounded x, n^(2/3) lambda^2 and the inverses of both terms large, {more}"
    holds = max(*needed, n ** (-2.0 / 3.0) / eigengap**2) <= 1.0
    return Limit(sampling, privacy, holds, f"Xia, Zhang and Cai, {name}", conditions, side="upper")


def _local(rate: float, epsilon: float, name: str) -> Limit:
    source = f"Wang, Smith and Xu, {name}"
    return Limit(0.0, min(1.0, rate), epsilon <= LOCAL_EPSILON, source, "local epsilon at most 23/35, x uniform on +-1")


def _eigenvector(n: float, p: float, epsilon: float | None, rho: float | None, s: float | None, name: str) -> Limit:
    if (epsilon is None) == (rho is None):
        raise InputError("one of epsilon and rho must be given; for instance rho=0.5.")
    _positive(n=n, p=p, **({"epsilon": epsilon} if epsilon is not None else {"rho": rho or 0.0}))
    size = p if s is None else s * math.log(max(p, 2.0))
    if epsilon is not None:
        privacy, enough = (size / (n * epsilon)) ** 2, n >= size / epsilon and epsilon <= 1
        conditions = "pure epsilon-DP, epsilon at most 1, n of order at least size / epsilon"
    else:
        privacy, enough = size / (n**2 * (rho or 1.0)), n >= max(size, math.sqrt(size / (rho or 1.0)))
        conditions = "rho-zCDP, n of order at least max(size, sqrt(size / rho))"
    return Limit(size / n, privacy, enough, f"DP-GEP, {name}", conditions)


def _positive(**given: float) -> None:
    for name, value in given.items():
        if not value > 0:
            raise InputError(f"{name} must be positive, got {value!r}.")
