"""A table with repeated visits: what protecting persons costs, and whether an attack on a whole person finds more.

    python -m benchmarks persons --replications 50

People differ in level (half of the variance of each feature is between people), as patients do; the response follows
from the features of the visit. The attack runs `audit_person` for 1, 2 and 10 rows.
"""

import numpy as np

from benchmarks.study import mean, replicate, write
from sfumato import Bounds, PrivateSIR, subspace_distance
from sfumato.audit.fits import Case, audit_person

PEOPLE, VISITS, FEATURES = 10_000, 10, 8
EPSILON, DELTA = 1.0, 1e-6
ROWS = (1, 2, 5, 10)
BOUNDS = Bounds(-4.0, 4.0)
RUNS = 400


def panel(seed: int, people: int = PEOPLE) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """x, y, ids and the true direction; one to ten visits of each person, in mixed order."""
    rng = np.random.default_rng(seed)
    ids = rng.permutation(np.repeat(np.arange(people), rng.integers(1, VISITS + 1, people)))
    x = (rng.standard_normal((people, FEATURES))[ids] + rng.standard_normal((len(ids), FEATURES))) / np.sqrt(2.0)
    direction = np.zeros((1, FEATURES))
    direction[0, :2] = np.array([2.0, -1.0]) / np.sqrt(5.0)
    index = x @ direction[0]
    return x, index + 0.3 * index**3 + rng.standard_normal(len(ids)), ids, direction


def distances(people: int, seed: int) -> tuple[float, ...]:
    """Of the fit that protects records, of one averaged row a person, and of so many rows that count."""
    x, y, ids, direction = panel(seed, people)
    averaged = np.array([np.bincount(ids, column) for column in x.T]).T / np.bincount(ids)[:, None]
    means = np.bincount(ids, y) / np.bincount(ids)
    plain = {"epsilon": EPSILON, "delta": DELTA, "n_directions": 1, "bounds": BOUNDS}
    found = [PrivateSIR(**plain).fit(x, y), PrivateSIR(**plain).fit(averaged, means)]
    found += [PrivateSIR(**plain, rows_per_person=rows).fit(x, y, groups=ids) for rows in ROWS]
    return tuple(subspace_distance(fit.directions_, direction) for fit in found)


def cost(replications: int) -> None:
    sizes = (1_000, 3_000, PEOPLE)
    rows = []
    for people in sizes:
        seen = replicate(distances, replications, people)
        rows.append((f"{people:,}", *(mean(column) for column in seen.T)))
    header = ("people", "records protected", "one averaged row each", *(f"rows that count: {k}" for k in ROWS))
    intro = (
        f"What protecting persons costs\n1 to {VISITS} visits of each person, {FEATURES} features, "
        f"epsilon = {EPSILON:g}, delta = {DELTA:g}; distance to the true direction, mean of "
        f"{replications} panels with its standard error."
        " The first column protects a single visit, not the person."
    )
    write("persons", f"python -m benchmarks persons --replications {replications}", intro, header, rows)


def attacked(replications: int) -> None:
    rows = []
    for relation in ("replace", "add-remove"):
        for k in (1, 2, 10):
            sir = PrivateSIR(20.0, DELTA, 1, Bounds(-1.0, 1.0), "descent", rows_per_person=k, relation=relation)
            found = audit_person(Case(sir, n_features=3, n_records=20), runs=RUNS)
            spent = found.whole.claimed
            verdict = "holds" if found.whole.passed and found.shown.passed else "**false**"
            moved = f"{max(found.moved) / spent:.3f}"
            rows.append((relation, k, f"{spent:.3f}", moved, *map(_proved, (found.whole, found.shown)), verdict))
    header = (
        "relation",
        "rows",
        "claimed mu",
        "largest move / mu",
        "proved, all releases",
        "proved, published",
        "claim",
    )
    intro = (
        f"An attacker who may change all rows of a person\nPrivateSIR by descent at epsilon = 20, {RUNS} fits of each "
        "of two neighbours, confidence 99 %. The person has two rows more than count. The largest move is exact: "
        "what the neighbours differ by, over the noise, in 20 fits."
    )
    write("persons-audit", f"python -m benchmarks persons --replications {replications}", intro, header, rows)


def _proved(result: object) -> str:
    return f"mu >= {result.audited_lower:.3f}"


def main(replications: int) -> None:
    cost(replications)
    attacked(replications)


if __name__ == "__main__":
    main(50)
