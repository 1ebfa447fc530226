"""Rayleigh flow beside one release solved exactly, and the three ways to sparse principal components."""

import numpy as np

from benchmarks.study import mean, replicate, write
from sfumato import Bounds, PrivateCCA, PrivateLDA, PrivatePCA, PrivateSparsePCA, subspace_distance
from sfumato.research import DPSPCA, RayleighFlowCCA, RayleighFlowLDA, RayleighFlowPCA, TruncatedRayleighFlowPCA


def first_directions(n: int, seed: int) -> tuple[float, ...]:
    """Distance to the first direction: components (refined, flow, printed), pairs and discriminants (exact, flow)."""
    rng = np.random.default_rng([seed, n])
    p, box = 10, Bounds(-20, 20)
    q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    x = (rng.normal(size=(n, p)) * np.sqrt([4.0, 2.0] + [1.0] * (p - 2))) @ q.T
    flows = (RayleighFlowPCA(1, bounds=box, calibration=calibration) for calibration in ("tight", "paper"))
    components = [PrivatePCA(1, bounds=box), *flows]
    out = [subspace_distance(kind.fit(x).directions_, q[:, 0]) for kind in components]
    z, w = rng.normal(size=(2, n, 5))
    w[:, 0] = 0.8 * z[:, 0] + 0.6 * w[:, 0]
    for kind in (PrivateCCA(1, bounds=box, y_bounds=box), RayleighFlowCCA(1, bounds=box, y_bounds=box)):
        out.append(subspace_distance(kind.fit(z, w).directions_, np.eye(5)[0]))
    y = rng.choice(["ash", "oak"], n)
    v = rng.normal(size=(n, p)) + 1.5 * (y == "oak")[:, None] * np.eye(p)[0]
    classes = {"classes": ["ash", "oak"], "n_directions": 1}
    for kind in (PrivateLDA(bounds=box, **classes), RayleighFlowLDA(bounds=box, **classes)):
        out.append(subspace_distance(kind.fit(v, y).directions_, np.eye(p)[0]))
    return tuple(out)


def sparse_components(n: int, p: int, seed: int) -> tuple[float, ...]:
    """Distance to a component of variance 6.25 on six features, noise 1; the non-private one knows the six."""
    rng = np.random.default_rng([seed, n, p])
    v = np.zeros(p)
    v[rng.choice(p, 6, replace=False)] = 1 / np.sqrt(6)
    x = rng.normal(size=(n, p)) + 2.5 * rng.normal(size=(n, 1)) * v
    known = np.zeros(p)
    known[v > 0] = np.linalg.eigh(np.cov(x[:, v > 0].T))[1][:, -1]
    kinds = (PrivateSparsePCA, DPSPCA, TruncatedRayleighFlowPCA)
    fits = [kind(1, bounds=Bounds(-20, 20)).fit(x).directions_ for kind in kinds]
    return tuple(subspace_distance(directions, v) for directions in (known, *fits))


def right_features(n: int, p: int, delta: float, seed: int) -> tuple[float, ...]:
    """Part of the six features of the component that are picked, eight being picked: add-remove, then replace-one."""
    rng = np.random.default_rng([seed, n, p])
    v = np.zeros(p)
    v[rng.choice(p, 6, replace=False)] = 1 / np.sqrt(6)
    x = rng.normal(size=(n, p)) + 2.5 * rng.normal(size=(n, 1)) * v
    relations = ("add-remove", "replace")
    fits = [
        PrivateSparsePCA(1, delta=delta, bounds=Bounds(-20, 20), relation=relation).fit(x) for relation in relations
    ]
    return tuple(float(np.isin(np.flatnonzero(v), fit.support_).mean()) for fit in fits)


def relations(replications: int) -> None:
    """What a selection owes under each relation: sums of squares have half the spread where a record comes or goes."""
    rows = []
    for n in (800, 1500):
        for label, delta in (("n^-1.1", n**-1.1), ("1e-6", 1e-6)):
            added, replaced = (mean(column) for column in replicate(right_features, replications, n, 300, delta).T)
            rows.append((n, 300, label, added, replaced))
    write(
        "sparse-pca-relations",
        f"python -m benchmarks sparse-pca-relations --replications {replications}",
        "Sparse principal components of small tables: part of the right features that is picked\n"
        "One component of variance 6.25 on six of p features, noise of variance 1, bounds ±20, max_features = 8, total "
        "epsilon = 1; mean ± standard error. Under add-remove a record moves every sum of squares the same way, and "
        "the picks owe half as much.",
        ("n", "p", "delta", "add-remove", "replace"),
        rows,
    )


def main(replications: int) -> None:
    """Total epsilon = 1, delta = 1e-6, replace-one."""
    command = f"python -m benchmarks flows --replications {replications}"
    setting = "Total epsilon = 1, delta = 1e-6, replace-one; mean distance ± standard error, 1.41 is orthogonal."

    def table(job, cases):
        return [(*case, *(mean(column) for column in replicate(job, replications, *case).T)) for case in cases]

    write(
        "flows",
        command,
        f"Rayleigh flow beside one release solved exactly\np = 10 (pairs: 5 + 5), bounds ±20. {setting}",
        ("n", "PCA", "PCA flow", "PCA flow, printed noise", "CCA", "CCA flow", "LDA", "LDA flow"),
        table(first_directions, [(10_000,), (40_000,)]),
    )
    write(
        "sparse-pca",
        command,
        "Sparse principal components: three ways\nOne component of variance 6.25 on six of p features, noise of "
        f"variance 1, bounds ±20, max_features = 8. {setting} The oracle knows the six features and is not private.",
        ("n", "p", "oracle", "PrivateSparsePCA", "DPSPCA", "TruncatedRayleighFlowPCA"),
        table(sparse_components, [(2000, 1000), (3000, 1000), (5000, 1000), (10_000, 1000)]),
    )
