"""How often ``n_directions="auto"`` is right, against non-private SIR with BIC on the same data."""

from benchmarks.study import TABLE_1, replicate, write
from sfumato import SIR, Bounds, PrivateSIR
from sfumato.simulate import xia


def right(model: str, n: int, p: int, epsilon: float, seed: int) -> tuple[float, ...]:
    """Whether the private and the non-private choice equal the true dimension."""
    sample = xia(model, n=n, p=p, random_state=seed)
    k = len(sample.directions)
    private = PrivateSIR(epsilon, n**-1.1, bounds=Bounds(-1.5, 1.5)).fit(sample.x, sample.y)
    plain = SIR(n_directions="auto", n_slices=20).fit(sample.x, sample.y)
    return float(len(private.directions_) == k), float(len(plain.directions_) == k)


def main(replications: int) -> None:
    """All rows at total epsilon = 1."""
    rows = []
    for model, n, p in TABLE_1:
        out = 100 * replicate(right, replications, model, n, p, 1.0).mean(axis=0)
        rows.append((model, n, p, f"{out[0]:.0f} %", f"{out[1]:.0f} %"))
    write(
        "dimension",
        f"python -m benchmarks dimension --replications {replications}",
        "Number of directions found right\ntotal epsilon = 1, delta = n^-1.1, n_directions='auto'.",
        ("model", "n", "p", "sfumato", "non-private SIR with BIC"),
        rows,
    )
