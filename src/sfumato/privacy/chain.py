"""Reading a ledger's bytes: the chain as far as it holds, and what is wrong after that. Pure."""

import hashlib
from dataclasses import dataclass, replace

from sfumato.privacy.account import Account, Books, open_account
from sfumato.privacy.ledger_lines import START, BadLineError, Line, read_line

_NONE = Line("", {}, "", "")


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not a valid continuation of the chain.

    `torn`: they end without a newline, as a write cut off by a crash does. A release waits until its line is on the
    disk as a whole, so nothing can have been released under a torn line.
    """

    line: int
    raw: bytes
    torn: bool
    why: str

    def __str__(self) -> str:
        what = "is cut off" if self.torn else "does not belong: " + self.why
        return f"line {self.line} {what} ({len(self.raw)} bytes from there to the end cannot be trusted)"


@dataclass(frozen=True, slots=True)
class Chain:
    """A prefix of the file that holds: its lines, what they add up to, its size; and the damage after it."""

    lines: tuple[Line, ...] = ()
    account: Account | None = None
    size: int = 0
    damage: Damage | None = None

    @property
    def head(self) -> str:
        """Hash of the last line: noted elsewhere, it proves later that nothing before it was changed or cut."""
        return self.lines[-1].hash if self.lines else START

    def extend(self, raw: bytes) -> "Chain":
        """The chain with the bytes that follow `size`."""
        lines, head, at = list(self.lines), self.head, 0
        books = None if self.account is None else Books(self.account)
        damage = None
        while at < len(raw):
            try:
                line, end = _next(raw, at, head)
                books = _enter(books, line)
            except BadLineError as error:
                line, end = _acknowledged(raw, at, head)
                try:
                    books = _enter(books, line)
                except BadLineError:
                    damage = Damage(len(lines) + 1, raw[at:], b"\n" not in raw[at:], str(error))
                    break
            lines.append(line)
            head, at = line.hash, end
        account = None if books is None else books.account()
        return Chain(tuple(lines), account, self.size + at, damage)

    def append(self, line: Line, size: int) -> "Chain":
        """The chain after a line of `size` bytes that was just written."""
        assert self.account is not None
        return replace(self, lines=(*self.lines, line), account=self.account.after(line), size=self.size + size)


def _enter(books: Books | None, line: Line) -> Books:
    if books is None:
        return Books(open_account(line))
    books.enter(line)
    return books


def _next(raw: bytes, at: int, head: str) -> tuple[Line, int]:
    """The line that starts at `at` and where the next one starts, or `BadLineError`."""
    end = raw.find(b"\n", at) + 1
    if end == 0:
        raise BadLineError("its end is missing")
    line = read_line(raw[at : end - 1])
    if line.prev != head:
        raise BadLineError("it does not follow the line before it, so a line was changed, lost or inserted")
    return line, end


def _acknowledged(raw: bytes, at: int, head: str) -> tuple[Line, int]:
    """The repair line that acknowledges exactly the bytes from `at` to itself; a line of no kind if there is none."""
    seen, start = hashlib.sha256(), at
    while (end := raw.find(b"\n", start) + 1) > 0:
        try:
            line = read_line(raw[start : end - 1])
        except BadLineError:
            line = _NONE
        if line.kind == "repair" and line.prev == head and line.fields.get("sha256") == seen.hexdigest():
            return line, end
        seen.update(raw[start:end])
        start = end
    return _NONE, len(raw)


def salvage(damaged: bytes, known: frozenset[str]) -> tuple[Line, ...]:
    """Lines inside damaged bytes that agree with their own hash and are not in the chain; a repair writes them anew."""
    found: dict[str, Line] = {}
    for text in damaged.split(b"\n"):
        try:
            line = read_line(text)
        except BadLineError:
            continue
        if line.hash not in known and line.kind in ("reserve", "entry", "close"):
            found.setdefault(line.hash, line)
    return tuple(found.values())
