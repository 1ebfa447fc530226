"""One peer on samples in a folder; run by the peer's own interpreter, which has nothing of ours.

    python benchmarks/peers_run.py PEER FOLDER

reads FOLDER/*.npz (x, y, k, epsilon, lower, upper) and writes FOLDER/PEER.json: directions and seconds for each.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np


def diffprivlib_regression(sample):
    """The coefficients of private linear regression, a direction if there is one; bounds of x and y are given."""
    from diffprivlib.models import LinearRegression

    bounds = (float(sample["lower"]), float(sample["upper"]))
    model = LinearRegression(
        epsilon=float(sample["epsilon"]), bounds_X=bounds, bounds_y=tuple(map(float, sample["range"]))
    )
    return np.atleast_2d(model.fit(sample["x"], sample["y"]).coef_)


def sliced_sir(sample):
    """SIR without privacy."""
    from sliced import SlicedInverseRegression

    return SlicedInverseRegression(n_directions=int(sample["k"]), n_slices=20).fit(sample["x"], sample["y"]).directions_


def statsmodels_sir(sample):
    """SIR without privacy."""
    from statsmodels.regression.dimred import SlicedInverseReg

    return (
        SlicedInverseReg(sample["y"], sample["x"]).fit(slice_n=len(sample["y"]) // 20).params[:, : int(sample["k"])].T
    )


PEERS = {
    "diffprivlib-regression": diffprivlib_regression,
    "sliced-sir": sliced_sir,
    "statsmodels-sir": statsmodels_sir,
}


def main(peer: str, folder: Path) -> None:
    """Every sample of the folder."""
    warnings.simplefilter("ignore")
    found = {}
    paths = sorted(folder.glob("*.npz"))
    for path in (paths[0], *paths):  # the first one twice: it pays for imports
        sample = np.load(path)
        began = time.process_time()
        directions = np.asarray(PEERS[peer](sample), dtype=float)
        found[path.stem] = {"directions": directions.tolist(), "seconds": time.process_time() - began}
    (folder / f"{peer}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
