"""Figure C.12 of Xia, Zhang and Cai: the number of features chosen by private validation, against knowing it."""

from sfumato import Bounds, PrivateSparseSIR, subspace_distance
from sfumato.papers.study import Row, Study, Values
from sfumato.simulate import xia

_BOX = Bounds(-1.5, 1.5)


def validation_study(n: int, p: int, seed: int) -> Values:
    """Distance of DP-SSIR with s known (two) and validated among one to eight, and of the flagship; epsilon = 1."""
    sample = xia("M1", n=n, p=p, high_dimensional=True, random_state=seed)
    delta = n**-1.1
    fits = {
        "DP-SSIR, s known": PrivateSparseSIR(1.0, delta, 1, _BOX, "dp-ssir", max_features=2),
        "DP-SSIR, s validated": PrivateSparseSIR(1.0, delta, 1, _BOX, "dp-ssir", max_features="validate"),
        "DP-SIni, s known": PrivateSparseSIR(1.0, delta, 1, _BOX, "dp-sini", max_features=2),
        "DP-SIni, s validated": PrivateSparseSIR(1.0, delta, 1, _BOX, "dp-sini", max_features="validate"),
        "sfumato": PrivateSparseSIR(1.0, delta, 1, _BOX),
    }
    return {
        name: subspace_distance(fit.fit(sample.x, sample.y).directions_, sample.directions)
        for name, fit in fits.items()
    }


VALIDATION = Study(
    "xia-validation",
    "DP-SIR, newest version, figure C.12: validation of the number of features (M1, p = 1000)",
    "The paper prints a picture only, so there is no printed column; it charges slices, peeling, estimate and "
    "validation epsilon = 1 each. Here all of it together costs epsilon = 1, delta = n^-1.1, so that more records are "
    "needed before anything is found. The printed rule prefers the worst candidate (a sign); the one measured here, "
    "the best.",
    tuple(Row(f"n = {n}", (n, 1000), {}) for n in (2000, 5000, 10_000, 20_000)),
    validation_study,
)
