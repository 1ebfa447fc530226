"""The pages about Python names, made from the public names themselves, so that none can be left out."""

from collections.abc import Sequence
from importlib import import_module

import sfumato

FRONT = {
    "estimators": ("Estimators", ("methods.",)),
    "privacy": ("Budgets, ledgers, errors", ("privacy.", "errors")),
    "data": ("Bounds, files, distances", ("bounds", "sources", "steps.")),
}
MODULES = {
    "forecast": ("Forecasts and limits", ("forecast", "limits")),
    "local": ("Randomisers", ("local",)),
    "federated": ("Federated", ("federated",)),
    "audit": ("Audit", ("audit",)),
    "model": ("Model files and reports", ("model", "report")),
    "research": ("The papers' estimators", ("research",)),
    "examples": ("Built-in data and simulated samples", ("datasets", "simulate")),
}


def pages() -> dict[str, str]:
    """Address on the site and text of every page."""
    found = {f"reference/{name}.md": _front(title, homes) for name, (title, homes) in FRONT.items()}
    found |= {f"reference/{name}.md": _modules(title, modules) for name, (title, modules) in MODULES.items()}
    rows = [f"* [{title}]({name}.md)" for name, (title, _) in (FRONT | MODULES).items()]
    intro = "# Reference\n\nEverything public, from the docstrings; examples in them are run by the tests.\n"
    return found | {"reference/index.md": "\n".join([intro, *rows, "* [Command line](cli.md)", ""])}


def _front(title: str, homes: tuple[str, ...]) -> str:
    names = [name for name, home in sfumato._HOME.items() if home.startswith(homes)]
    return _page(title, [f"sfumato.{name}" for name in sorted(names, key=_importance)])


def _importance(name: str) -> tuple[bool, bool, str]:
    """The flagship first, the methods without privacy last."""
    return name in ("SIR", "SAVE", "DR"), name != "PrivateSIR", name


def _modules(title: str, modules: Sequence[str]) -> str:
    names = []
    for module in modules:
        listed = getattr(import_module(f"sfumato.{module}"), "__all__", None)
        names += [f"sfumato.{module}"] if listed is None else [f"sfumato.{module}.{name}" for name in listed]
    return _page(title, names)


def _page(title: str, names: Sequence[str]) -> str:
    return "\n\n".join([f"# {title}", *(f"::: {name}" for name in names), ""])
