"""The family: which estimator goes by which name, and which options each takes."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from sfumato.errors import InputError
from sfumato.methods import FAMILY, added, load


@dataclass(frozen=True)
class Member:
    """One estimator, by the name it has at the command line."""

    name: str

    @property
    def make(self) -> Any:
        """The class."""
        return load(FAMILY[self.name] if self.name in FAMILY else added()[self.name])

    @property
    def takes(self) -> tuple[str, ...]:
        """Its options besides those that all take: budget, bounds, directions."""
        return tuple(self.make.about.options)

    @property
    def methods(self) -> tuple[str, ...]:
        """Ways to find the directions."""
        return tuple(getattr(import_module(self.make.__module__), "METHODS", ()))

    def check_method(self, method: str) -> None:
        """Refuse a method that the estimator does not have; of one that is an estimator now, say which."""
        from sfumato.methods.parameters import MOVED, one_of

        moved = MOVED.get(self.make.__name__, {}).get(method)
        if moved is not None:
            name = next(name for name, home in added().items() if home.endswith(f".{moved}"))
            raise InputError(f"method: {method!r} is an estimator of its own now; use --estimator {name}.")
        one_of("method", method, self.methods)


NEEDS = {
    "response": "the column to explain",
    "second": "the columns of the second set, as a,b,c or 'lab_*'",
    "q": "the number of columns of the second set",
}


def find_member(name: str) -> Member:
    """The estimator of this name.

    >>> find_member("pac")
    Traceback (most recent call last):
    sfumato.errors.InputError: estimator: there is no 'pac'; did you mean 'pca'?
    """
    if name not in FAMILY and name not in added():
        close = difflib.get_close_matches(name.lower().removeprefix("private"), [*FAMILY, *added()], n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"choose among {', '.join(FAMILY)}."
        raise InputError(f"estimator: there is no {name!r}; {hint}")
    return Member(name)


def check_options(chosen: Member, options: Mapping[str, Any], needed: tuple[str, ...] = ()) -> None:
    """Refuse what the estimator does not take, and the lack of what it needs; None is what was not given."""
    for option, value in options.items():
        flag = f"--{option.replace('_', '-')}"
        if value is not None and option not in chosen.takes:
            raise InputError(f"{flag[2:]}: {chosen.name} takes no {flag}; {_instead(chosen, option)}.")
        if value is None and option in needed and option in chosen.takes:
            raise InputError(f"{flag[2:]}: {chosen.name} needs {flag}, {NEEDS[option]}.")


def _instead(chosen: Member, option: str) -> str:
    """What to do about an option that is not for the estimator."""
    if option == "response" and "second" in chosen.takes:
        return "it has two sets of columns: name the second with --second"
    if option == "response":
        return "it explains no column: leave it out, and choose columns with --features"
    others = ", ".join(name for name in FAMILY if option in Member(name).takes)
    return f"leave it out (it is for {others})"
