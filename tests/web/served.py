"""A desk that is really served, and a client that follows its link."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv


def write_patients(path: Path, n: int = 3000) -> None:
    """A table of made-up patients, whose stay is explained by age and bmi."""
    rng = np.random.default_rng(11)
    age, bmi, dose = rng.uniform(20, 90, n), rng.uniform(15, 45, n), rng.normal(size=n)
    ward = rng.choice(["north", "south"], n)
    los = 0.1 * age + 0.1 * bmi + 0.3 * rng.normal(size=n)
    table = {"patient_id": np.arange(n), "age": age, "bmi": bmi, "dose": dose, "ward": ward, "los": los}
    pcsv.write_csv(pa.table(table), path)


def write_slow(path: Path) -> None:
    """A table that takes a while."""
    x = np.random.default_rng(0).normal(size=(150_000, 8))
    pcsv.write_csv(pa.table({f"x{i}": x[:, i] for i in range(8)} | {"y": x[:, 0]}), path)


class Answer:
    """Status, headers and body of an answer."""

    def __init__(self, response: HTTPResponse) -> None:
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def place(self) -> str:
        """Where a redirect leads."""
        return str(self.headers["Location"])


class Client:
    """Asks one server; after `enter` with the cookie that a browser would have."""

    def __init__(self, link: str) -> None:
        self.link, parts = link, urlsplit(link)
        self.host = parts.netloc
        self.origin = f"http://{self.host}"
        self.cookie = self._form_token = ""
        self.folder = Path()

    def enter(self) -> "Client":
        answer = self.ask("GET", self.link.removeprefix(self.origin))
        assert answer.status == 200
        self.cookie = answer.headers["Set-Cookie"].partition(";")[0]
        return self

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request, with exactly these headers besides Host and cookie."""
        name, _, port = self.host.partition(":")
        connection = HTTPConnection(name, int(port), timeout=60)
        own = {"Cookie": self.cookie} if self.cookie else {}
        try:
            connection.request(method, path, body, own | dict(headers or {}))
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path: str) -> Answer:
        return self.ask("GET", path)

    def form_token(self) -> str:
        """The token of our own forms, as the first page that has one says."""
        for page in () if self._form_token else ("/declare?table=patients.csv", "/account"):
            found = re.search(r'name="form-token" value="([0-9a-f]+)"', self.get(page).text)
            self._form_token = found[1] if found else self._form_token
        assert self._form_token
        return self._form_token

    def post(self, path: str, fields: Mapping[str, str] | None = None, **headers: str) -> Answer:
        """A form, sent as our own pages do."""
        body = urlencode({"form-token": self.form_token()} | dict(fields or {})).encode()
        usual = {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded"}
        return self.ask("POST", path, body, usual | headers)


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """``sfumato serve`` in a process of its own, which is gone afterwards."""
    command = [sys.executable, "-m", "sfumato", "serve", str(folder), "--port", "0", "--no-browser", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ))
    try:
        assert process.stdout is not None
        yield process, Client(process.stdout.readline().strip())
    finally:
        stop(process)


def stop(process: subprocess.Popen[Any]) -> None:
    """Ask a process to end, and make it."""
    process.terminate()
    try:
        process.communicate(timeout=40)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate(timeout=20)
