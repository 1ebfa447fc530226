"""What no method can beat: the papers' lower bounds as functions, and the few constants that are known.

A `Limit` is a rate (its order in n, p, epsilon) unless `constant_known`, in which case its value is itself a bound.
Losses are squared, as in the theorems: ``E ||P - P_hat||_F^2`` for subspaces, ``E |theta - theta_hat|^2`` for
coefficients, ``E (1 - cos)`` for the eigenvectors of paper 004. `root` is on the scale of `subspace_distance`.
"""

import math
from dataclasses import dataclass

from sfumato.errors import InputError

LOCAL_EPSILON = 23 / 35
"""Largest epsilon of the theorems of Wang, Smith and Xu (2018)."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A lower bound on a squared loss, split in what records cost and what privacy costs.

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
    """

    sampling: float
    privacy: float
    holds: bool
    source: str
    conditions: str
    constant_known: bool = False

    @property
    def value(self) -> float:
        """Both terms together."""
        return self.sampling + self.privacy

    @property
    def root(self) -> float:
        """On the scale of a distance."""
        return math.sqrt(self.value)


def sir(n: float, p: float, epsilon: float, delta: float, eigengap: float = 1.0) -> Limit:
    """DP-SIR: ``p / (lambda^2 n) + p^2 / (lambda^2 n^2 eps^2)`` (Xia, Zhang and Cai, Theorem 1).

    >>> sir(n=20_000, p=15, epsilon=0.5, delta=1e-6).holds
    True
    """
    _positive(n=n, p=p, epsilon=epsilon, delta=delta, eigengap=eigengap)
    holds = p <= n * epsilon * eigengap and epsilon < 1 and delta < 1 / n
    return Limit(
        p / (eigengap**2 * n),
        (p / (eigengap * n * epsilon)) ** 2,
        holds,
        "Xia, Zhang and Cai, Theorem 1",
        "(epsilon, delta)-DP, epsilon < 1, delta below n^-(1 + gamma), p of order at most n epsilon lambda",
    )


def sparse_sir(n: float, p: float, s: float, epsilon: float, delta: float, eigengap: float = 1.0) -> Limit:
    """Sparse DP-SIR: ``s log p / (lambda^2 n) + (s log p)^2 / (lambda^2 n^2 eps^2)`` (the same, Theorem 4)."""
    _positive(n=n, p=p, s=s, epsilon=epsilon, delta=delta, eigengap=eigengap)
    size = s * math.log(max(p, 2.0))
    return Limit(
        size / (eigengap**2 * n),
        (size / (eigengap * n * epsilon)) ** 2,
        size <= n * epsilon * eigengap and epsilon < 1 and delta < 1 / n,
        "Xia, Zhang and Cai, Theorem 4",
        "(epsilon, delta)-DP, epsilon < 1, delta below n^-(1 + gamma), s log p of order at most n epsilon lambda",
    )


def local_regression(n: float, p: float, epsilon: float, *, interactive: bool = False) -> Limit:
    """x and y both local, one active feature: ``min(1, p log p / (n eps^2))``, without the log if interactive.

    Wang, Smith and Xu, Theorems 1 and 2: in high dimension there is nothing to be had when x is private too.
    """
    _positive(n=n, p=p, epsilon=epsilon)
    factor = 1.0 if interactive else math.log(max(p, 2.0))
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
