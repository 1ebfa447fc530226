"""What must be there before anything is started: Flower, files, keys and certificates."""

import re
import ssl
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sfumato.errors import InputError
from sfumato.federated.flower import library


def demand_flower() -> None:
    """Refuse, with the remedy, where Flower is not installed, or in a version whose inner parts we do not know."""
    if find_spec("flwr") is None:
        raise InputError("Flower is not installed; run: pip install 'sfumato[federated]'.")
    (first, least), (other, below) = library.VERSIONS
    found = version("flwr")
    if not (first, least) <= tuple(map(int, re.findall(r"\d+", found)[:2])) < (other, below):
        raise InputError(
            f"Flower {found} is installed; this needs {first}.{least} or newer, but older than {other}.{below}. Run: "
            "pip install 'sfumato[federated]'."
        )


def demand_files(**files: Path) -> None:
    """Refuse, by the option's name, a file that is not there."""
    for option, path in files.items():
        if not path.is_file():
            raise InputError(f"{option}: there is no file {path}.")


def private_key(path: Path) -> Any:
    """A site's private key, as ``ssh-keygen -t ecdsa -b 384`` writes it, without a passphrase."""
    try:
        key = library.load_ssh_private_key(path.read_bytes(), None)
    except (ValueError, TypeError, library.UnsupportedAlgorithm):
        key = None
    if not isinstance(key, library.EllipticCurvePrivateKey):
        raise InputError(f"key: {path} is no private key without passphrase; make one: {_MAKE} -f NAME.")
    return key


def public_keys(paths: Sequence[Path]) -> list[bytes]:
    """The sites' public keys as Flower registers them; every site has its own."""
    found: dict[bytes, Path] = {}
    for path in paths:
        key = _public(path)
        if key in found:
            raise InputError(f"site: {found[key]} and {path} hold the same key; give every site its own.")
        found[key] = path
    return list(found)


def authority(path: Path) -> bytes:
    """The certificate of the authority that both sides trust."""
    text = path.read_bytes()
    if b"-----BEGIN CERTIFICATE-----" not in text:
        raise InputError(f"ca: {path} is no certificate in PEM format.")
    return text


def demand_pair(certificate: Path, key: Path) -> None:
    """Refuse a certificate and a private key that do not belong together."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (ssl.SSLError, ValueError):
        raise InputError(
            f"certificate: {certificate} and the key {key} do not belong together, or are not in PEM format."
        ) from None


def _public(path: Path) -> bytes:
    try:
        key = library.load_ssh_public_key(path.read_bytes())
        if isinstance(key, library.EllipticCurvePublicKey) and library.uses_nist_ec_curve(key):
            return bytes(library.public_key_to_bytes(key))
    except (ValueError, library.UnsupportedAlgorithm):
        pass
    raise InputError(f"site: {path} is no public key of a site; its maker gets one beside NAME: {_MAKE} -f NAME.")


_MAKE = 'ssh-keygen -t ecdsa -b 384 -N ""'
