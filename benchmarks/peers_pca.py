"""Principal components by diffprivlib and OpenDP on the data of `benchmarks.gep`: seconds and angle of one fit.

They do not fit into sfumato's environment (diffprivlib needs scikit-learn < 1.9). Make one for them:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install diffprivlib opendp "scikit-learn<1.9"
    timeout 100 /tmp/peers/bin/python benchmarks/peers_pca.py diffprivlib 50000 10
"""

import sys
import time
import warnings

import numpy as np


def data(n: int, p: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Records with spectrum 5, 4, 3, 0.5, ..., the leading three directions as rows, and the 0.999-quantile length."""
    rng = np.random.default_rng(0)
    spectrum = np.concatenate([[5.0, 4.0, 3.0], np.full(p - 3, 0.5)])
    q = np.linalg.qr(rng.normal(size=(p, p)))[0]
    x = (rng.normal(size=(n, p)) * np.sqrt(spectrum)) @ q.T
    return x, q[:, :3].T, float(np.quantile(np.linalg.norm(x[:2000], axis=1), 0.999))


def components(which: str, x: np.ndarray, length: float) -> np.ndarray:
    """Three components at epsilon = 1, the length of records given for free."""
    if which == "diffprivlib":
        from diffprivlib.models import PCA

        return PCA(n_components=3, epsilon=1.0, centered=True, data_norm=length).fit(x).components_
    if which == "opendp":
        import opendp.prelude as dp
        from opendp.extras.sklearn.decomposition import PCA

        dp.enable_features("contrib", "floating-point", "honest-but-curious")
        n, p = x.shape
        return PCA(epsilon=1.0, row_norm=length, n_samples=n, n_features=p, n_components=3).fit(x).components_
    from sfumato import Bounds, PrivatePCA

    return PrivatePCA(3, bounds=Bounds(-50, 50)).fit(x).directions_


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    name, n, p = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    x, true, length = data(n, p)
    start = time.time()
    found = np.asarray(components(name, x, length))[:3]
    cosine = np.linalg.svd(found @ true.T, compute_uv=False).min()
    print(f"{name} p={p}: {time.time() - start:.1f} s, {np.degrees(np.arccos(min(1.0, cosine))):.2f} degrees")
