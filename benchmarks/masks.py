"""Pairwise masks with signed keys: a secure sum for a fixed roster of sites, and what attacks on it yield.

    .venv-flower/bin/python -m benchmarks.masks

A trial of the protocol that docs/explanation/secure-aggregation.md examines, on the sums of `benchmarks.secagg`. It is
not part of the package. Every primitive is from `cryptography`: ECDSA on P-384, as the sites' registered keys are,
X25519, HKDF and ChaCha20.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from benchmarks.secagg import N, P, shares
from benchmarks.study import write

STEP = 2.0**-20
"""Uploads are whole numbers of these, modulo 2**64."""
Masked = NDArray[np.uint64]
Roster = Mapping[str, ec.EllipticCurvePublicKey]


class RefusedError(Exception):
    """A site does not go on."""


@dataclass(frozen=True)
class Hello:
    """A site's key for one run, signed together with the run's terms and the roster."""

    site: str
    key: bytes
    signature: bytes


@dataclass
class Masking:
    """One site in one run. `roster` came from the other sites' operators, not from the server."""

    name: str
    own: ec.EllipticCurvePrivateKey
    roster: Roster
    terms: bytes
    secret: X25519PrivateKey = field(default_factory=X25519PrivateKey.generate)

    def _said(self, key: bytes) -> bytes:
        names = "|".join(sorted(self.roster)).encode()
        keys = b"".join(str(self.roster[name].public_numbers()).encode() for name in sorted(self.roster))
        return sha256(names).digest() + sha256(keys).digest() + sha256(self.terms).digest() + key

    def hello(self) -> Hello:
        key = self.secret.public_key().public_bytes_raw()
        return Hello(self.name, key, self.own.sign(self._said(key), ec.ECDSA(hashes.SHA256())))

    def mask(self, value: NDArray[np.float64], question: bytes, hellos: Sequence[Hello]) -> Masked:
        """The upload: the value on the grid and one mask for every other site, added by one of a pair and taken off
        by the other. `question` is what was asked, in the words the site read."""
        heard = {hello.site: hello for hello in hellos}
        if len(hellos) != len(heard) or set(heard) != set(self.roster):
            raise RefusedError("the sites heard are not those of the roster")
        upload = np.rint(value / STEP).astype(np.int64).view(np.uint64).copy()
        for name in sorted(self.roster.keys() - {self.name}):
            hello = heard[name]
            try:
                self.roster[name].verify(hello.signature, self._said(hello.key), ec.ECDSA(hashes.SHA256()))
            except InvalidSignature:
                raise RefusedError(f"the key of {name} is not signed by it for this run, plan and roster") from None
            pair = "|".join(sorted((self.name, name))).encode()
            shared = self.secret.exchange(X25519PublicKey.from_public_bytes(hello.key))
            seed = HKDF(hashes.SHA256(), 32, sha256(self.terms + question).digest(), pair).derive(shared)
            stream = Cipher(algorithms.ChaCha20(seed, bytes(16)), None).encryptor().update(bytes(8 * upload.size))
            mask = np.frombuffer(stream, dtype="<u8")
            upload = upload + mask if self.name < name else upload - mask
        return upload


def read(total: Masked) -> NDArray[np.float64]:
    """A sum of uploads as numbers."""
    return total.view(np.int64) * STEP


class Sites:
    """Honest sites with a roster of their own making; a server in between may tell each of them something else."""

    def __init__(self, values: Sequence[NDArray[np.float64]], terms: bytes = b"run 1") -> None:
        self.keys = {f"h{i}": ec.generate_private_key(ec.SECP384R1()) for i in range(len(values))}
        self.values = dict(zip(self.keys, values, strict=True))
        self.begin(terms)

    def begin(self, terms: bytes) -> None:
        roster = {name: key.public_key() for name, key in self.keys.items()}
        self.sites = {name: Masking(name, key, roster, terms) for name, key in self.keys.items()}
        self.hellos = [site.hello() for site in self.sites.values()]

    def uploads(self, questions: Mapping[str, bytes] | None = None) -> dict[str, Masked]:
        asked = questions or dict.fromkeys(self.sites, b"slices")
        return {name: site.mask(self.values[name], asked[name], self.hellos) for name, site in self.sites.items()}


def total(uploads: Sequence[Masked]) -> NDArray[np.float64]:
    return read(np.sum(uploads, axis=0, dtype=np.uint64))


def refusal(sites: Sites, hellos: Sequence[Hello]) -> str:
    """What a site says to these keys."""
    try:
        sites.sites["h0"].mask(sites.values["h0"], b"slices", hellos)
    except RefusedError as error:
        return f"refused: {error}"
    return "**accepted**"


def off(found: NDArray[np.float64], truth: NDArray[np.float64], std: float) -> str:
    """How far a guess of the server's is from what it should not know, in noise standard deviations."""
    return f"{np.sqrt(np.mean((found - truth) ** 2)) / std:.3g}"


def attacks(values: Sequence[NDArray[np.float64]], again: Sequence[NDArray[np.float64]], std: float) -> list[list[str]]:
    """What a server learns of one site's upload, by attack; `again` are the same sums with fresh noise."""
    sites = Sites(values)
    sent, alone = sites.uploads(), values[0]
    others = [sent[name] for name in sent if name != "h0"]
    rows = [["nothing: all uploads are added", off(total(list(sent.values())), np.sum(values, axis=0), std), "the sum"]]
    rows.append(
        [
            "one site is called present and gone: its upload is left out",
            off(total(others), np.sum(values[1:], axis=0), std),
            "the sum of the others",
        ]
    )
    rows.append(["one upload is read as it is", off(read(sent["h0"]), alone, std), "that upload"])
    mine = X25519PrivateKey.generate().public_key().public_bytes_raw()
    forged = [Hello(each.site, mine, each.signature) if each.site == "h1" else each for each in sites.hellos]
    rows.append(["the server puts its own key in place of another site's", refusal(sites, forged), ""])
    rows.append(["it leaves a site out of the list of keys", refusal(sites, sites.hellos[:-1]), ""])
    old = sites.hellos[1]
    sites.begin(b"run 2")
    rows.append(["it shows a key of an earlier run", refusal(sites, [sites.hellos[0], old, *sites.hellos[2:]]), ""])
    told = dict.fromkeys(sites.sites, b"slices") | {"h0": b"another question"}
    rows.append(
        [
            "it asks one site something else",
            off(total(list(sites.uploads(told).values())), np.sum(values, axis=0), std),
            "the sum",
        ]
    )
    kept, fresh = _differences(values, again)
    rows.append(
        [
            "it says a site was gone, and has the others answer once more with the noise they had",
            off(kept, alone, std),
            "that upload",
        ]
    )
    rows.append(
        ["the same, where a new run has new noise and is paid for again", off(fresh, alone, std), "that upload"]
    )
    rows.append(
        [
            "all other sites of the roster are the server's own inventions",
            off(_invented(values), alone, std),
            "that upload",
        ]
    )
    return rows


def _differences(values, again):
    """What two sums tell of the first site, if the second leaves it out, with the same noise and with new noise."""
    everybody = total(list(Sites(values).uploads().values()))
    found = []
    for second in (values[1:], again[1:]):
        found.append(everybody - total(list(Sites(second, b"run 2").uploads().values())))
    return found


def _invented(values):
    sites = Sites(values)
    sent = sites.uploads()
    return total(list(sent.values())) - np.sum(values[1:], axis=0)  # whose uploads it knows: it made them


def main() -> None:
    """Write what was measured."""
    values, _, std = shares()
    again, _, _ = shares(100)
    missed = [f"{sites} sites {0.99 ** (18 * sites):.0%}" for sites in (3, 10, 50)]
    write(
        "secagg-masks",
        ".venv-flower/bin/python -m benchmarks.masks",
        "Pairwise masks with signed keys: what a server learns\n"
        f"Three sites of {N} records with shares of the noise, slice sums and second moment of {P} features "
        f"({values[0].size} numbers), epsilon = 1, delta = 1e-5. 'Off' is the root mean square distance of what the "
        "server computes from what the last column names, in standard deviations of the noise of the sum: 0 is known "
        "exactly, numbers above 1e9 are uniform modulo 2^64. Every site must answer every line: if each misses one "
        f"exchange in a hundred, a run of 18 exchanges ends well in {', '.join(missed)} of cases.",
        ("what the server does", "off", "from"),
        attacks(values, again, std),
    )


if __name__ == "__main__":
    main()
