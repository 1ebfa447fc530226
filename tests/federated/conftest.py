"""Three sites in one process, reached as a deployment reaches them: JSON in, JSON and bytes out."""

import numpy as np
import pytest

from sfumato import Bounds, Budget, PrivateSIR
from sfumato.federated.site import Site, handle
from sfumato.privacy.ledger import FileLedger
from sfumato.records import Response
from sfumato.simulate import he
from sfumato.sources import ArraySource

# for environments with Flower, NVFlare and vantage6; doctests would import them in this one
collect_ignore = ["public_app.py", "nvflare_recorder.py", "vantage6_algorithm.py"]


class Consortium:
    """Sites on disk; a new `Site` for every message, as Flower does it. `faults` alter what a site replies."""

    def __init__(self, folder, parts, *, cap=2.0, seed=7, protects="record", relation="replace"):
        self.folder, self.parts, self.seed = folder, parts, seed
        self.faults, self.sent, self.sources, self.told = {}, [], {}, []
        self.rules = {}
        folder.mkdir(exist_ok=True)
        for name in parts:
            account = Budget.approximate(cap, 1e-5)
            FileLedger(self.ledger(name), account, relation, rehearsal=seed is not None, protects=protects)

    def ledger(self, name):
        return self.folder / f"{name}.jsonl"

    def site(self, name):
        rules = {"tell": self.told.append, "random_state": self.seed} | self.rules
        return Site(self.source(name), self.ledger(name), self.folder / name, name=name, **rules)

    def source(self, name):
        """Numbers and a numeric response, unless told otherwise."""
        if name in self.sources:
            return self.sources[name]
        x, y, *ids = self.parts[name]
        return ArraySource(x, y, Response(), ids=ids[0] if ids else None)

    def send(self, requests):
        replies = {}
        for name, request in requests.items():
            self.sent.append((name, request))
            fault = self.faults.get(name, lambda request, answer: answer())
            reply = fault(request, lambda name=name, request=request: handle(self.site(name), request))
            if reply is not None:
                replies[name] = reply
        return replies


def draws(n=6_000, seed=0):
    sample = he("V", n=n, random_state=seed)
    return {f"h{i}": (sample.x[i::3].copy(), sample.y[i::3].copy()) for i in range(3)}, sample


@pytest.fixture
def consortium(tmp_path):
    return Consortium(tmp_path, draws()[0])


@pytest.fixture
def people(tmp_path):
    """The same sites, whose people have several rows each."""
    rng = np.random.default_rng(1)
    parts = {name: (x, y, rng.integers(0, len(x) // 3, len(x))) for name, (x, y) in draws()[0].items()}
    return Consortium(tmp_path, parts, protects="person")


@pytest.fixture
def estimator():
    return PrivateSIR(epsilon=1.0, delta=1e-5, n_directions=2, bounds=Bounds(-6, 6))


@pytest.fixture
def silence():
    """Noise that is exactly zero: every uniform number is just below 1/2."""
    from sfumato.privacy.noise import Noise

    class Silence(Noise):
        def words(self, count):
            return np.full(count, 2**63 - 1, dtype=np.uint64)

    return Silence()
