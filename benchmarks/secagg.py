"""Can Flower's SecAgg+ carry our sums? Its client code, run as printed, with a query of a one-shot fit.

Needs Flower: ``.venv-flower/bin/python -m benchmarks.secagg``. Three sites add shares of the noise. Measured: what the
server gets with Flower's settings and with a range that fits, and what a server that departs from the protocol gets: in
the last stage it lists one site both as present and as gone, and the other sites hand over shares of both its secrets.
"""

from importlib import import_module
from typing import Any

import numpy as np
from flwr.common import ConfigRecord, bytes_to_ndarray, ndarrays_to_parameters
from flwr.common.secure_aggregation.crypto.shamir import combine_shares
from flwr.common.secure_aggregation.crypto.symmetric_encryption import generate_shared_key
from flwr.common.secure_aggregation.secaggplus_constants import Key
from flwr.common.secure_aggregation.secaggplus_utils import pseudo_rand_gen
from flwr.supercore.primitives.asymmetric import bytes_to_private_key, bytes_to_public_key

from benchmarks.study import write
from sfumato import Bounds, Budget
from sfumato.federated.simulation import OneThread
from sfumato.privacy.noise import SeededNoise
from sfumato.privacy.plan import Plan
from sfumato.records import Response
from sfumato.settings.federated import SiteLedger, open_site, trust_of
from sfumato.simulate import he
from sfumato.sources import ArraySource
from sfumato.statistics.histograms import Bins
from sfumato.statistics.slices import SlicedMoments
from sfumato.statistics.whitening import Whitening
from sfumato.steps.one_shot import OneShot

SITES, N, P, SLICES = 3, 2_000, 10, 10
NODES = tuple(range(1, SITES + 1))
Vector = np.ndarray
mod = import_module("flwr.client.mod.secure_aggregation.secaggplus_mod")  # its package has a function of that name


def shares(seed: int = 0) -> tuple[list[Vector], list[Vector], float]:
    """What each site would upload, the same without noise, and the noise of the sum."""
    budget, trust = Budget.approximate(1.0, 1e-5), trust_of("secure-aggregation", SITES, SITES)
    plan = Plan(OneShot(1.0).lines).calibrate(budget)
    sample = he("V", n=SITES * N, random_state=0)
    whitening = Whitening(Bounds(-6.0, 6.0).grid(P), np.eye(P) * 6.0, np.zeros(P), float(np.sqrt(P)))
    edges = np.quantile(np.random.default_rng(1).standard_normal(10_000), np.arange(1, SLICES) / SLICES)
    query = SlicedMoments(whitening, Bins(edges), np.arange(SLICES), SLICES)
    noisy, exact = [], []
    for i in range(SITES):
        source = OneThread(ArraySource(sample.x[i::SITES], sample.y[i::SITES], Response()))
        ledger = SiteLedger(budget, "replace", rehearsal=True)
        release = open_site(source, plan, ledger, SeededNoise(seed + i), trust).answer(query, "slices")
        noisy.append(release.value)
        exact.append(source.sum(query) * query.grid)
    return noisy, exact, float(np.median(release.noise_std)) * np.sqrt(SITES)


def protocol(uploads: list[Vector], clip: float) -> tuple[dict[int, Any], dict[int, Vector]]:
    """Stages 0 to 2 with Flower's client functions: the states, and the masked vectors the server holds."""
    states = {node: mod.SecAggPlusState(nid=node) for node in NODES}
    terms = {Key.SAMPLE_NUMBER: SITES, Key.SHARE_NUMBER: SITES, Key.THRESHOLD: 2, Key.CLIPPING_RANGE: clip}
    terms |= {Key.TARGET_RANGE: 2**22, Key.MOD_RANGE: 2**32, Key.MAX_WEIGHT: 1.0}
    keys = {}
    for node, state in states.items():
        state.nid = node
        told = mod._setup(state, ConfigRecord(terms))
        keys[str(node)] = [told[Key.PUBLIC_KEY_1], told[Key.PUBLIC_KEY_2]]
    post: dict[int, list[tuple[int, bytes]]] = {node: [] for node in NODES}
    for node, state in states.items():
        told = mod._share_keys(state, ConfigRecord(keys))
        for target, text in zip(told[Key.DESTINATION_LIST], told[Key.CIPHERTEXT_LIST], strict=True):
            post[target].append((node, text))
    masked = {}
    for node, upload in zip(NODES, uploads, strict=True):
        sources, texts = zip(*post[node], strict=True)
        letter = ConfigRecord({Key.SOURCE_LIST: list(sources), Key.CIPHERTEXT_LIST: list(texts)})
        told = mod._collect_masked_vectors(states[node], letter, 1, ndarrays_to_parameters([upload]))
        masked[node] = bytes_to_ndarray(told[Key.MASKED_PARAMETERS][1]).astype(np.int64)
    return states, masked


def secrets(states: dict[int, Any], present: list[int], gone: list[int]) -> dict[tuple[int, str], bytes]:
    """Stage 3: the secrets that the shares of all sites but those gone give away."""
    found: dict[tuple[int, str], list[bytes]] = {}
    for node in NODES[1:]:
        letter = ConfigRecord({Key.ACTIVE_NODE_ID_LIST: present, Key.DEAD_NODE_ID_LIST: gone})
        told = mod._unmask(states[node], letter)
        kinds = ["mask"] * len(present) + ["key"] * len(gone)
        for owner, kind, share in zip(told[Key.NODE_ID_LIST], kinds, told[Key.SHARE_LIST], strict=True):
            found.setdefault((owner, kind), []).append(share)
    return {what: combine_shares(each) for what, each in found.items()}


def own_mask(seed: bytes, size: int) -> Vector:
    # the first array is the factor that Flower puts in front of the vector
    return np.asarray(pseudo_rand_gen(seed, 2**32, [(), (size,)])[1], dtype=np.int64)


def read(total: Vector, clip: float, sites: int) -> Vector:
    """Quantised sum back to numbers."""
    return (total % 2**32) * (2 * clip / 2**22) - sites * clip


def honest_sum(uploads: list[Vector], clip: float) -> Vector:
    """What a server that keeps to the protocol learns."""
    states, masked = protocol(uploads, clip)
    opened = secrets(states, list(NODES), [])
    masks = sum(own_mask(opened[node, "mask"], uploads[0].size) for node in NODES)
    return read(sum(masked.values()) - masks, clip, SITES)


def stolen_upload(uploads: list[Vector], clip: float) -> Vector:
    """What a server learns of site 1 that lists it both as present and as gone."""
    states, masked = protocol(uploads, clip)
    opened, size = secrets(states, list(NODES), [1]), uploads[0].size
    value = masked[1] - own_mask(opened[1, "mask"], size)
    for node in NODES[1:]:
        key = generate_shared_key(bytes_to_private_key(opened[1, "key"]), bytes_to_public_key(states[node].pk1))
        value = value + own_mask(key, size)  # site 1 has the lowest number, so it subtracted them
    return read(value, clip, 1)


def main() -> None:
    """Write what was measured."""
    uploads, exact, std = shares()
    truth, fits = np.sum(uploads, axis=0), float(2.0 ** np.ceil(np.log2(np.abs(uploads).max())))
    rows = []
    for name, clip in (("Flower's own range, 8", 8.0), (f"a range that fits, {fits:g}", fits)):
        error = honest_sum(uploads, clip) - truth
        rows.append((name, f"{np.abs(error).max():.3g}", f"{np.abs(error).max() / std:.2g}"))
    stolen = stolen_upload(uploads, fits)
    away = np.sqrt(np.mean((stolen - exact[0]) ** 2))
    rows.append(("site 1 alone, read by a server that lists it twice", f"{np.abs(stolen - uploads[0]).max():.3g}", ""))
    write(
        "secagg",
        ".venv-flower/bin/python -m benchmarks.secagg",
        "SecAgg+ with shares of noise: what a server learns\n"
        f"Three sites of {N} records, slice sums and second moment of {P} features ({truth.size} numbers), epsilon = "
        f"1, delta = 1e-5; the noise of the sum has a standard deviation of {std:.1f}. Flower 1.41, its client code "
        "unchanged. 'Error' is the largest difference from the sum of the uploads (last row: from the upload of site 1 "
        "alone). Four messages to and from every site for each sum. Last row: that upload has only a third of the "
        f"noise's variance (it is {away:.1f} from the exact sums, root mean square), and no site notices.",
        ("what", "error", "in noise standard deviations"),
        rows,
    )


if __name__ == "__main__":
    main()
