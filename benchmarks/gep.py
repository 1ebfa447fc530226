"""Principal components, canonical correlations, discriminants and second-order reduction, beside their plain peers.

Peers: the non-private method, and the plain Gaussian mechanism on the covariance with a radius given to it.
diffprivlib and OpenDP, which give no answer within minutes at p >= 10, have a script of their own (`peers_pca.py`).
"""

import numpy as np
from sklearn.cross_decomposition import CCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import sfumato as sf
from benchmarks.study import mean, replicate, write
from sfumato.datasets import load_pendigits

N = 50_000


def _plain_gaussian(x: np.ndarray, radius: float, rng: np.random.Generator) -> np.ndarray:
    """Three leading eigenvectors of X'X plus Gaussian noise: records clipped to the radius, replace-one."""
    length = np.linalg.norm(x, axis=1, keepdims=True)
    clipped = x * np.minimum(1.0, radius / length)
    std = np.sqrt(2.0) * radius**2 / sf.Budget.approximate(1.0, 1e-6).mu()
    upper = np.triu(rng.normal(size=(x.shape[1],) * 2) * std)
    return np.linalg.eigh(clipped.T @ clipped + upper + np.triu(upper, 1).T)[1][:, -3:].T


def angles(p: int, seed: int) -> tuple[float, ...]:
    """Largest principal angle of the leading three, in degrees."""
    rng = np.random.default_rng([seed, p])
    spectrum = np.concatenate([[5.0, 4.0, 3.0], np.full(p - 3, 0.5)])
    q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    x = (rng.normal(size=(N, p)) * np.sqrt(spectrum)) @ q.T
    longest = float(np.quantile(np.linalg.norm(x[:2000], axis=1), 0.999))
    found = (
        np.linalg.eigh(x.T @ x)[1][:, -3:].T,
        _plain_gaussian(x, longest, rng),
        sf.PrivatePCA(3, bounds=sf.Bounds(-50, 50)).fit(x).directions_,
        sf.PrivatePCA(3).fit(x).directions_,
        sf.PrivatePCA(3, bounds=sf.Bounds(-50, 50), method="one-shot").fit(x).directions_,
        sf.PrivatePCA(3, relation="add-remove").fit(x).directions_,
    )
    return tuple(float(np.degrees(sf.principal_angles(directions, q[:, :3].T).max())) for directions in found)


def canonical(first: float, second: float, seed: int) -> tuple[float, ...]:
    """Distance to the planted pairs, x and y averaged: non-private, bounds given, bounds found."""
    rng, p = np.random.default_rng(seed), 10
    r = np.array([first, second])
    z, w = rng.normal(size=(2, N, p))
    w[:, :2] = r * z[:, :2] + np.sqrt(1 - r**2) * w[:, :2]
    a, b = np.eye(p) + 0.8 * rng.normal(size=(2, p, p)) / np.sqrt(p)
    x, y, true = z @ a.T, w @ b.T, (np.linalg.inv(a)[:2], np.linalg.inv(b)[:2])
    plain = CCA(n_components=2, scale=False, max_iter=5000, tol=1e-12).fit(x, y)
    given = sf.PrivateCCA(2, bounds=sf.Bounds(-20, 20), y_bounds=sf.Bounds(-20, 20)).fit(x, y)
    found = sf.PrivateCCA(2).fit(x, y)
    pairs = ((plain.x_rotations_.T, plain.y_rotations_.T), (given.directions_, given.y_directions_))
    pairs += ((found.directions_, found.y_directions_),)
    return tuple(sum(sf.subspace_distance(d, t) for d, t in zip(pair, true, strict=True)) / 2 for pair in pairs)


def digits(seed: int) -> tuple[float, ...]:
    """Accuracy on the other writers' digits: non-private, replace, add-remove, bounds found."""
    table = load_pendigits().to_pandas()
    test, features = table["test"] == 1, list(table.columns[:16])
    x, y = table.loc[~test, features].to_numpy(float), table.loc[~test, "digit"].to_numpy()
    other, truth = table.loc[test, features].to_numpy(float), table.loc[test, "digit"].to_numpy()
    options = {"classes": list(range(10)), "n_directions": 9}
    models = (
        LinearDiscriminantAnalysis(),
        sf.PrivateLDA(**options, bounds=sf.Bounds(0, 100)),
        sf.PrivateLDA(**options, bounds=sf.Bounds(0, 100), relation="add-remove"),
        sf.PrivateLDA(**options),
    )
    return tuple(float((model.fit(x, y).predict(other) == truth).mean()) for model in models)


def symmetric(n: int, seed: int) -> tuple[float, ...]:
    """Distance to b for y = (b'x)^2 + noise: SIR, SAVE, DR, then the private ones."""
    rng = np.random.default_rng([seed, n])
    x, b = rng.normal(size=(n, 10)), rng.normal(size=10)
    y = (x @ (b / np.linalg.norm(b))) ** 2 + 0.5 * rng.normal(size=n)
    plain = [kind(n_directions=1).fit(x, y).directions_ for kind in (sf.SIR, sf.SAVE, sf.DR)]
    private = [
        kind(n_directions=1, bounds=sf.Bounds(-6, 6)).fit(x, y).directions_
        for kind in (sf.PrivateSIR, sf.PrivateSAVE, sf.PrivateDR)
    ]
    return tuple(sf.subspace_distance(directions, b) for directions in (*plain, *private))


def main(replications: int) -> None:
    """Total epsilon = 1, delta = 1e-6, everything included."""
    command = f"python -m benchmarks gep --replications {replications}"
    setting = f"n = {N}, total epsilon = 1, delta = 1e-6, replace-one unless said; mean ± standard error."

    def table(job, cases):
        runs = [(case, replicate(job, replications, *case)) for case in cases]
        return [(*case, *(mean(column) for column in out.T)) for case, out in runs]

    write(
        "gep-cca",
        command,
        f"Canonical correlations: distance to two planted pairs\np = 10 + 10, correlations as given; {setting}",
        ("first", "second", "non-private", "bounds ±20", "bounds=None"),
        table(canonical, [(0.9, 0.6), (0.5, 0.3)]),
    )
    write(
        "gep-lda",
        command,
        "Discriminants: accuracy on pendigits\n7,494 training rows, 16 features, 10 classes, tested on other writers; "
        "epsilon = 1, delta = 1e-6; mean ± standard error.",
        ("non-private", "bounds 0-100", "add-remove", "bounds=None"),
        table(digits, [()]),
    )
    write(
        "gep-second-order",
        command,
        "Symmetric link y = (b'x)^2 + noise: distance to b\np = 10, bounds ±6, epsilon = 1, delta = 1e-6, replace-one; "
        "mean ± standard error. 1.41 is orthogonal.",
        ("n", "SIR", "SAVE", "DR", "PrivateSIR", "PrivateSAVE", "PrivateDR"),
        table(symmetric, [(20_000,), (50_000,)]),
    )
    write(
        "gep-pca",
        command,
        "Principal components: largest angle of the leading three, in degrees\n"
        f"Spectrum 5, 4, 3, 0.5, ..., 0.5 in a random basis; {setting} 'Plain Gaussian' is given the 0.999-quantile of "
        "the lengths for free; the others find their radius privately, with bounds ±50 or none.",
        ("p", "non-private", "plain Gaussian", "bounds ±50", "bounds=None", "one-shot, ±50", "add-remove, None"),
        table(angles, [(20,), (100,)]),
    )
