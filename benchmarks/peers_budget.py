"""Other private ways to a direction at the same budget and bounds: least squares four ways, components by Oja's rule.

    python -m benchmarks.peers_budget --replications 50 --folder /path/to/tables

Every method is calibrated by the same Gaussian accounting: a release of sensitivity s gets noise s / mu, and the
releases of a method share mu^2. Bounds are given to all. Least squares needs a range of y, too, which slices do not: it
is given the quantiles 0.001 and 0.999, read from the table, a gift. Replace-one.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow.csv
from scipy.stats import rankdata

from benchmarks.study import Mean, mean, replicate, write
from sfumato import SIR, Bounds, PrivatePCA, PrivateSIR, subspace_distance
from sfumato.privacy.accounting import gdp_mu
from sfumato.simulate import xia

REACH = 0.45
"""Longest record kept, in half widths times the root of the number of features; as in sfumato's own estimators."""
STEPS, STEP, CLIP = 300, 4.0, 0.1
"""Of gradient descent: best of a grid on other draws (`python -m benchmarks.peers_budget --tune`)."""
TABLES = {
    "california_housing": ("median_house_value", ("ocean_proximity",)),
    "ccpp": ("PE", ()),
    "kc_house": ("price", ("id", "date", "zipcode")),
    "compactiv": ("usr", ()),
}
FRAME = (("linear", 20_000, 15), ("linear, correlated", 20_000, 15), ("M1", 20_000, 15), ("M2", 20_000, 15))


@dataclass(frozen=True, slots=True, eq=False)
class Bounded:
    """Records within public bounds, in half widths: rows (u, 1) of length at most `length`, and y within [-1, 1]."""

    z: np.ndarray
    y: np.ndarray
    length: float

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> "Bounded":
        """The last column stands for the intercept; its size is that of a typical feature."""
        p = x.shape[1]
        u = np.clip((x - (lower + upper) / 2) / ((upper - lower) / 2), -1.0, 1.0)
        u *= np.minimum(1.0, REACH * np.sqrt(p) / np.maximum(np.linalg.norm(u, axis=1), 1e-12))[:, None]
        low, high = np.quantile(y, [0.001, 0.999])
        v = np.clip((y - (low + high) / 2) / max((high - low) / 2, 1e-12), -1.0, 1.0)
        return cls(np.column_stack([u, np.full(len(u), REACH)]), v, REACH * np.sqrt(p + 1))


def symmetric(rng: np.random.Generator, p: int, std: float) -> np.ndarray:
    """Noise for a symmetric matrix: its length as a vector of the upper triangle, off-diagonals counted twice."""
    upper = np.triu(rng.standard_normal((p, p)) * std / np.sqrt(2.0), 1)
    return upper + upper.T + np.diag(rng.standard_normal(p) * std)


def noised_statistics(data: Bounded, mu: float, rng: np.random.Generator) -> np.ndarray:
    """Noised sufficient statistics: one release of z'z and z'y together, and least squares from them.

    A record's (zz', zy) has squared length r^4 + r^2 (y in [-1, 1]), and two of them differ by at most root two times
    that for zz' and by 2r for zy.
    """
    r, p = data.length, data.z.shape[1]
    std = np.sqrt(2.0 * r**4 + 4.0 * r**2) / mu
    gram = data.z.T @ data.z + symmetric(rng, p, std)
    cross = data.z.T @ data.y + std * rng.standard_normal(p)
    values, vectors = np.linalg.eigh(gram)
    return vectors @ ((vectors.T @ cross) / np.maximum(values, std * np.sqrt(p)))


def ada_ssp(data: Bounded, mu: float, rng: np.random.Generator) -> np.ndarray:
    """AdaSSP (Wang 2018, algorithm 2): three releases at a third of mu^2 each; ridge by the noisy least eigenvalue."""
    r, p, each = data.length, data.z.shape[1], mu / np.sqrt(3.0)
    gram, cross, rho = data.z.T @ data.z, data.z.T @ data.y, 0.05
    least = np.linalg.eigvalsh(gram)[0] + r**2 / each * (rng.standard_normal() - np.sqrt(2.0 * np.log(2.0 / rho)))
    ridge = max(0.0, np.sqrt(p * np.log(2.0 * p**2 / rho)) * np.sqrt(2.0) * r**2 / each - max(least, 0.0))
    gram = gram + symmetric(rng, p, np.sqrt(2.0) * r**2 / each) + ridge * np.eye(p)
    return np.asarray(np.linalg.solve(gram, cross + 2.0 * r / each * rng.standard_normal(p)))


def insufficient_statistics(data: Bounded, mu: float, rng: np.random.Generator) -> np.ndarray:
    """What insufficient-statistics perturbation (Brown et al. 2024, arXiv 2404.15409) could reach at best; not private.

    Least squares with noise in the shape of its own covariance. One record moves the solution by about the root of
    its leverage times its residual, two by twice that. Here the largest of both (0.999 quantile) are read from the
    data, and neither the filter that enforces them nor the test before the release is paid for: the real method adds
    more.
    """
    gram = data.z.T @ data.z + 1e-6 * np.eye(data.z.shape[1])
    solution = np.linalg.solve(gram, data.z.T @ data.y)
    leverage = np.einsum("ij,ij->i", data.z @ np.linalg.inv(gram), data.z)
    residual = np.abs(data.y - data.z @ solution)
    most = 2.0 * np.sqrt(np.quantile(leverage, 0.999)) * np.quantile(residual, 0.999)
    root = np.linalg.cholesky(np.linalg.inv(gram))
    return np.asarray(solution + most / mu * root @ rng.standard_normal(len(solution)))


def gradient_descent(
    data: Bounded, mu: float, rng: np.random.Generator, steps: int = STEPS, step: float = STEP, clip: float = CLIP
) -> np.ndarray:
    """Full-batch gradient descent on squared loss; gradients clipped record by record, mu^2 shared by the steps."""
    n, p = data.z.shape
    most = clip * data.length
    std = 2.0 * most / (n * mu / np.sqrt(steps))
    beta, mean_of_last, reach = np.zeros(p), np.zeros(p), most / np.linalg.norm(data.z, axis=1)
    for i in range(steps):
        error = data.z @ beta - data.y
        weights = np.clip(error, -reach, reach)  # a gradient is the error times z: so its length is at most `most`
        beta = beta - step * p / data.length**2 / 4.0 * (data.z.T @ weights / n + std * rng.standard_normal(p))
        if i >= steps // 2:
            mean_of_last += beta / (steps - steps // 2)
    return mean_of_last


LEAST_SQUARES: dict[str, Callable[..., np.ndarray]] = {
    "noised statistics": noised_statistics,
    "AdaSSP": ada_ssp,
    "gradient descent": gradient_descent,
    "ISSP, idealised": insufficient_statistics,
}


def directions(x: np.ndarray, y: np.ndarray, lower: np.ndarray, upper: np.ndarray, epsilon: float, seed: int) -> list:
    """Ours, the peers', and least squares and SIR without privacy; unit vectors in the units of x."""
    delta = len(x) ** -1.1
    mu, rng = gdp_mu(epsilon, delta), np.random.default_rng([seed, 17])
    data, width = Bounded.of(x, y, lower, upper), (upper - lower) / 2
    ours = PrivateSIR(epsilon, delta, 1, Bounds(lower, upper)).fit(x, y).directions_[0]
    peers = [method(data, mu, rng)[:-1] / width for method in LEAST_SQUARES.values()]
    plain = np.linalg.lstsq(data.z, data.y, rcond=None)[0][:-1] / width
    scale = np.maximum(x.std(axis=0), 1e-12)
    return [ours, *peers, plain, SIR(1, 20).fit(x / scale, y).directions_[0] / scale]


COLUMNS = ("sfumato", *LEAST_SQUARES, "least squares, no privacy", "SIR, no privacy")


def draw(model: str, n: int, p: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Records, responses and the true direction."""
    if model.startswith("M"):
        sample = xia(model, n=n, p=p, random_state=seed)
        return sample.x, sample.y, sample.directions[0]
    rng = np.random.default_rng([seed, 5])
    x = rng.standard_normal((n, p))
    if "correlated" in model:
        x = x @ np.linalg.cholesky(0.9 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))).T
    b = rng.standard_normal(p)
    return np.clip(0.5 * x, -1.5, 1.5), x @ b / np.sqrt(b @ np.cov(x.T) @ b) + rng.standard_normal(n), b


def losses(model: str, n: int, p: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distances to the true direction."""
    x, y, b = draw(model, n, p, seed)
    found = directions(x, y, np.full(p, -1.5), np.full(p, 1.5), epsilon, seed)
    return tuple(subspace_distance(each[None] / np.linalg.norm(each), b[None] / np.linalg.norm(b)) for each in found)


def table(folder: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of a table, complete rows."""
    response, dropped = TABLES[name]
    frame = pyarrow.csv.read_csv(Path(folder) / f"{name}.csv").to_pandas().drop(columns=list(dropped)).dropna()
    y = frame.pop(response)
    return frame.to_numpy(float), y.to_numpy(float)


def correlations(folder: str, name: str, epsilon: float, seed: int) -> tuple[float, ...]:
    """Spearman's correlation of each direction with the response, over all records. Same bounds for all: 0.1 % cut."""
    x, y = table(folder, name)
    lower, upper = np.quantile(x, 0.001, axis=0), np.quantile(x, 0.999, axis=0)
    upper = np.maximum(upper, lower + 1e-9 * np.maximum(np.abs(lower), 1.0))
    found, ranks = directions(x, y, lower, upper, epsilon, seed), rankdata(y)
    return tuple(abs(float(np.corrcoef(rankdata(x @ each), ranks)[0, 1])) for each in found)


def oja(x: np.ndarray, k: int, radius: float, mu: float, rng: np.random.Generator, rounds: int = 5) -> np.ndarray:
    """k components one after another by private Oja steps on batches, as k-DP-PCA (arXiv 2508.10879); rows.

    Disjoint batches: every release has all of mu. A step is the mean of x (x'v) over the batch, each clipped to half
    the square of the radius, plus noise; found components are taken out of the records. The paper estimates the spread
    of these privately, which is left out here and costs nothing. Rounds and steps are the best of a few tried.
    """
    n, p = x.shape
    x = x * np.minimum(1.0, radius / np.maximum(np.linalg.norm(x, axis=1), 1e-12))[:, None]
    found = np.zeros((0, p))
    for part in np.array_split(rng.permutation(n), k):
        v = rng.standard_normal(p)
        for i, batch in enumerate(np.array_split(part, rounds)):
            rows = x[batch] - x[batch] @ found.T @ found
            v = v - found.T @ (found @ v)
            v /= np.linalg.norm(v)
            most = radius**2 / 2.0
            moves = rows * (rows @ v)[:, None]
            moves *= np.minimum(1.0, most / np.maximum(np.linalg.norm(moves, axis=1), 1e-12))[:, None]
            step = moves.mean(axis=0) + 2.0 * most / (len(batch) * mu) * rng.standard_normal(p)
            v = v + step * 2.0 / (1.0 + i / 2.0)
        v = v - found.T @ (found @ v)
        found = np.vstack([found, v / np.linalg.norm(v)])
    return found


def noised_covariance(x: np.ndarray, k: int, radius: float, mu: float, rng: np.random.Generator) -> np.ndarray:
    """Analyze Gauss (Dwork et al. 2014): eigenvectors of the noised second moments."""
    x = x * np.minimum(1.0, radius / np.maximum(np.linalg.norm(x, axis=1), 1e-12))[:, None]
    noisy = x.T @ x + symmetric(rng, x.shape[1], np.sqrt(2.0) * radius**2 / mu)
    return np.asarray(np.linalg.eigh(noisy)[1][:, ::-1][:, :k].T)


def components(n: int, p: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Distances to three true components, spectrum 5, 4, 3, 0.5, ...: ours, Analyze Gauss, Oja, no privacy."""
    rng = np.random.default_rng([seed, 29])
    spectrum, q = np.concatenate([[5.0, 4.0, 3.0], np.full(p - 3, 0.5)]), np.linalg.qr(rng.normal(size=(p, p)))[0]
    x, delta = (rng.normal(size=(n, p)) * np.sqrt(spectrum)) @ q.T, n**-1.1
    mu, radius = gdp_mu(epsilon, delta), 1.5 * np.sqrt(spectrum.sum())
    found = (
        PrivatePCA(3, epsilon, delta, Bounds(-10, 10)).fit(x).directions_,
        noised_covariance(x, 3, radius, mu, rng),
        oja(x, 3, radius, mu, rng),
        np.linalg.eigh(x.T @ x)[1][:, ::-1][:, :3].T,
    )
    return tuple(subspace_distance(each, q[:, :3].T) for each in found)


def tune(draws: int = 3) -> None:
    """The grid that gradient descent was chosen from, on draws that no table uses."""
    mu, ends = gdp_mu(1.0, 20_000**-1.1), np.full(15, 1.5)
    for steps, step, clip in product((30, 100, 300), (2.0, 4.0, 8.0), (0.05, 0.1, 0.25)):
        found = []
        for model, seed in product(("M1", "linear, correlated"), range(1000, 1000 + draws)):
            x, y, b = draw(model, 20_000, 15, seed)
            data = Bounded.of(x, y, -ends, ends)
            each = gradient_descent(data, mu, np.random.default_rng(seed), steps, step, clip)[:-1]
            found.append(subspace_distance(each[None] / np.linalg.norm(each), b[None] / np.linalg.norm(b)))
        print(f"{steps:4} steps, {step:g}, clip {clip:g}: {mean(found)}", flush=True)


def main(replications: int, folder: str | None = None) -> None:
    """Models, components and, if there is a folder, tables."""
    command = f"python -m benchmarks.peers_budget --replications {replications}"
    rows = [
        (*setting, epsilon, *_means(replicate(losses, replications, *setting, epsilon)))
        for epsilon in (1.0, 0.25)
        for setting in FRAME
    ]
    write(
        "peers-budget",
        command,
        "Directions at the same budget and bounds, mean distance\n"
        "(epsilon, n^-1.1) for every private column, replace-one, bounds -1.5 and 1.5 given; least squares is given a "
        "range of y as well. *linear*: normal features, signal-to-noise 1, all coefficients random; *correlated*: "
        "AR(0.9). ISSP is idealised and not private: what its noise alone would do. Gradient descent with the step "
        "that is best on other draws of M1 and of the correlated model together.",
        ("model", "n", "p", "epsilon", *COLUMNS),
        rows,
    )
    rows = [
        (n, p, epsilon, *_means(replicate(components, replications, n, p, epsilon)))
        for n, p, epsilon in ((50_000, 10, 1.0), (50_000, 20, 1.0), (10_000, 20, 1.0))
    ]
    write(
        "peers-budget-pca",
        command,
        "Three components at the same budget and bounds, mean distance\n"
        "Spectrum 5, 4, 3, 0.5, ...; (epsilon, n^-1.1), replace-one. The peers are given a radius, 1.5 times the root "
        "of the trace; `PrivatePCA` bounds of +-10 alone.",
        ("n", "p", "epsilon", "`PrivatePCA`", "Analyze Gauss", "private Oja, deflated", "PCA, no privacy"),
        rows,
    )
    if folder is None:
        return
    rows = []
    for name in TABLES:
        x, _ = table(folder, name)
        for epsilon in (1.0, 0.25):
            found = replicate(correlations, max(8, replications // 5), folder, name, epsilon)
            rows.append((name, *x.shape, epsilon, *_means(found)))
    write(
        "peers-budget-real",
        f"{command} --folder ...",
        "Directions of real tables at the same budget and bounds: Spearman's correlation with the response\n"
        "Over all records, mean over fresh noise. Bounds are the quantiles 0.001 and 0.999 of each column, for all; "
        "least squares is given those of y as well. ISSP is idealised and not private.",
        ("table", "n", "p", "epsilon", *COLUMNS),
        rows,
    )


def _means(found: np.ndarray) -> list[Mean]:
    return [mean(column) for column in found.T]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=50)
    parser.add_argument("--folder")
    parser.add_argument("--tune", action="store_true")
    given = parser.parse_args()
    if given.tune:
        tune()
    else:
        main(given.replications, given.folder)
