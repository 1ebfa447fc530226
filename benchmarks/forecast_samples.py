"""Records of the assumed populations, and the loss of private fits on them: one replication each."""

import math

import numpy as np

import sfumato as sf
from sfumato.federated import simulate
from sfumato.methods.pca import SpikedCovariance

DELTA = 1e-6


def components(n: int, p: int, k: int, epsilon: float, signal: float, seed: int) -> tuple[float, ...]:
    """Distances of `refined` and `one-shot`, in a random basis."""
    rng = np.random.default_rng([seed, n, p])
    q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    x = (rng.normal(size=(n, p)) * np.sqrt(SpikedCovariance(p, k, signal).variances)) @ q.T
    fits = (sf.PrivatePCA(k, epsilon, DELTA, sf.Bounds(-100, 100), method).fit(x) for method in ("refined", "one-shot"))
    return tuple(sf.subspace_distance(fit.directions_, q[:, :k].T) for fit in fits)


def pairs(n: int, p: int, q: int, k: int, epsilon: float, signal: float, seed: int) -> tuple[float, ...]:
    """Mean distance of both tables, mixed by random matrices."""
    rng = np.random.default_rng([seed, n, p])
    x, y = rng.normal(size=(n, p)), rng.normal(size=(n, q))
    y[:, :k] = math.sqrt(signal) * x[:, :k] + math.sqrt(1 - signal) * y[:, :k]
    turns = [np.linalg.qr(rng.normal(size=(size, size)))[0] for size in (p, q)]
    fit = sf.PrivateCCA(k, epsilon, DELTA, sf.Bounds(-20, 20), sf.Bounds(-20, 20)).fit(x @ turns[0].T, y @ turns[1].T)
    found = zip((fit.directions_, fit.y_directions_), turns, strict=True)
    return (sum(sf.subspace_distance(d, turn[:, :k].T) for d, turn in found) / 2,)


def classes(n: int, p: int, h: int, epsilon: float, signal: float, seed: int) -> tuple[float, ...]:
    """Distance of the discriminant of h classes on a line."""
    rng = np.random.default_rng([seed, n, p])
    code, place = rng.integers(0, h, n), np.arange(h) - (h - 1) / 2
    x = rng.normal(size=(n, p))
    x[:, 0] = math.sqrt(signal) * (place / place.std())[code] + math.sqrt(1 - signal) * x[:, 0]
    fit = sf.PrivateLDA(epsilon, DELTA, 1, sf.Bounds(-8, 8), list(range(h))).fit(x, code)
    return (sf.subspace_distance(fit.directions_, np.eye(1, p)),)


def few_explain(n: int, p: int, epsilon: float, signal: float, seed: int) -> tuple[float, ...]:
    """Distance where three of p features explain y."""
    rng, true = np.random.default_rng([seed, n, p]), np.repeat([1.0, 0.0], [3, p - 3])
    x = rng.normal(size=(n, p))
    y = math.sqrt(signal / 3) * x @ true + math.sqrt(1 - signal) * rng.normal(size=n)
    fit = sf.PrivateSparseSIR(epsilon, DELTA, 1, sf.Bounds(-4, 4)).fit(x, y)
    return (sf.subspace_distance(fit.directions_, true),)


def few_vary(n: int, p: int, epsilon: float, signal: float, seed: int) -> tuple[float, ...]:
    """Distance where six of p features share a component."""
    rng, true = np.random.default_rng([seed, n, p]), np.repeat([1.0, 0.0], [6, p - 6])
    x = rng.normal(size=(n, p)) + math.sqrt(signal / (1 - signal)) * np.outer(rng.normal(size=n), true)
    fit = sf.PrivateSparsePCA(1, epsilon, DELTA, sf.Bounds(-20, 20)).fit(x)
    return (sf.subspace_distance(fit.directions_, true),)


def even(name: str, n: int, p: int, epsilon: float, signal: float, seed: int) -> tuple[float, ...]:
    """Distance where y depends on the square of one direction."""
    rng = np.random.default_rng([seed, n, p])
    x = rng.normal(size=(n, p))
    y = math.sqrt(signal / 2) * x[:, 0] ** 2 + math.sqrt(1 - signal) * rng.normal(size=n)
    kind = sf.PrivateSAVE if name == "SAVE" else sf.PrivateDR
    return (sf.subspace_distance(kind(epsilon, DELTA, 1, sf.Bounds(-8, 8)).fit(x, y).directions_, np.eye(1, p)),)


def several(n: int, p: int, q: int, k: int, epsilon: float, signal: float, seed: int) -> tuple[float, ...]:
    """Distance where each of q responses moves with one of k directions."""
    rng = np.random.default_rng([seed, n, p])
    x, turn = rng.normal(size=(n, p)), np.linalg.qr(rng.normal(size=(p, p)))[0]
    y = math.sqrt(signal) * x[:, np.arange(q) % k] + math.sqrt(1 - signal) * rng.normal(size=(n, q))
    fit = sf.PrivateMultiSIR(epsilon, DELTA, k, sf.Bounds(-5, 5)).fit(x @ turn.T, y)
    return (sf.subspace_distance(fit.directions_, turn[:, :k].T),)


def censored(method: str, n: int, p: int, epsilon: float, signal: float, seed: int) -> tuple[float, ...]:
    """Distance where half of the times are cut short by chance."""
    rng = np.random.default_rng([seed, n, p])
    x, turn = rng.normal(size=(n, p)), np.linalg.qr(rng.normal(size=(p, p)))[0]
    time, end = math.sqrt(signal) * x[:, 0] + math.sqrt(1 - signal) * rng.normal(size=n), rng.normal(size=n)
    y = np.column_stack([np.exp(np.minimum(time, end)), time <= end])
    fit = sf.PrivateCensoredSIR(epsilon, DELTA, 1, sf.Bounds(-5, 5), method=method).fit(x @ turn.T, y)
    return (sf.subspace_distance(fit.directions_, turn[:, :1].T),)


def at_sites(clients: int, n: int, p: int, epsilon: float, trust: str, seed: int) -> tuple[float, ...]:
    """Distances of `descent` and `one-shot` over sites of n records each, half of y explained."""
    rng = np.random.default_rng([seed, n, p, clients])
    x = rng.normal(size=(clients * n, p))
    y = x[:, 0] + rng.normal(size=len(x))
    parts = [(x[i::clients], y[i::clients]) for i in range(clients)]
    fits = (
        simulate(sf.PrivateSIR(epsilon, DELTA, 1, sf.Bounds(-3, 3), method), parts, trust=trust)
        for method in ("descent", "one-shot")
    )
    return tuple(sf.subspace_distance(fit.directions_, np.eye(1, p)) for fit in fits)
