"""Every table and figure of the five papers, and what became of it here."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Verdict = Literal["reproduced", "partly reproduced", "refuted", "not reproducible here"]
"""Refuted: the printed values do not come out of what the paper states; how they were made is not known."""

FIRST = "DP-SIR, first version (Xia, Zhang and Cai)"
NEWEST = "DP-SIR, newest version (Xia, Zhang and Cai)"
FSIR = "FSIR (He, Zhang and Chen)"
GEP = "DP-GEP (Hu, Xiang, Liu and Wang)"
IHT = "DP-IHT (Wang, Smith and Xu)"
BEYOND = "Beyond the papers"


@dataclass(frozen=True, slots=True)
class Item:
    """One table or figure: where it stands, what became of it and why, and the study that repeats it, if any does."""

    paper: str
    name: str
    verdict: Verdict
    why: str
    study: str = ""


_NO_MARKET = "the supermarket data cannot be had"

ITEMS: tuple[Item, ...] = (
    Item(
        FIRST,
        "Table 1",
        "refuted",
        "no row of DP-Ini and DP-SIR reaches its printed value with the printed noise, ten of sixteen of DP-RF do",
        "xia-first-table-1",
    ),
    Item(
        FIRST,
        "Table 2",
        "refuted",
        "no row of DP-SIni, DP-TRF and DP-SSIR reaches its printed value with the printed noise",
        "xia-first-table-2",
    ),
    Item(
        FIRST, "Table 3", "not reproducible here", f"{_NO_MARKET}; the pipeline runs on a table of yours", "xia-table-3"
    ),
    Item(FIRST, "Figure 1", "not reproducible here", _NO_MARKET),
    Item(FIRST, "Figure 2", "not reproducible here", _NO_MARKET),
    Item(
        NEWEST,
        "Table 1",
        "refuted",
        "no row of DP-Ini, DP-RF and DP-SIR reaches its printed value with the stated noise; SIR does in M1 and M2",
        "xia-table-1",
    ),
    Item(
        NEWEST,
        "Table 2",
        "refuted",
        "no row of DP-SIni, DP-TRF and DP-SSIR reaches its printed value with the stated noise",
        "xia-table-2",
    ),
    Item(
        NEWEST,
        "Table 3",
        "not reproducible here",
        f"{_NO_MARKET}; the pipeline runs on a table of yours",
        "xia-table-3",
    ),
    Item(NEWEST, "Figure 1", "not reproducible here", _NO_MARKET),
    Item(NEWEST, "Figure 2", "not reproducible here", _NO_MARKET),
    Item(
        NEWEST,
        "Figure C.1",
        "not reproducible here",
        "its 800 labels were predicted by a lasso; on the 200 labelled records no private method of the paper comes "
        "near the lasso",
        "xia-cancer",
    ),
    Item(
        NEWEST,
        "Figure C.2",
        "reproduced",
        "the difference of the gaps vanishes; at n = 2000 it is below 1 %, the text says 4 % and 6 %",
        "xia-slices",
    ),
    Item(NEWEST, "Figure C.3", "reproduced", "the difference of the losses vanishes, too", "xia-slices"),
    Item(
        NEWEST,
        "Figure C.4",
        "reproduced",
        "from epsilon = 0.1 on the gap is constant, for M3 a little below that of quantiles",
        "xia-slices",
    ),
    Item(NEWEST, "Figure C.5", "reproduced", "the loss falls with epsilon and is constant from 0.1 on", "xia-slices"),
    Item(NEWEST, "Figure C.6", "reproduced", "the gap rises with the bins and then falls slowly", "xia-slices"),
    Item(NEWEST, "Figure C.7", "reproduced", "the loss falls and then rises slowly", "xia-slices"),
    Item(NEWEST, "Figure C.8", "reproduced", "the gap rises with the bins and then stays", "xia-slices"),
    Item(NEWEST, "Figure C.9", "reproduced", "the loss falls and then stays", "xia-slices"),
    Item(
        NEWEST,
        "Figure C.10",
        "reproduced",
        "the gap grows with the slices, slowly beyond ten, and close to that of quantiles",
        "xia-slices",
    ),
    Item(NEWEST, "Figure C.11", "reproduced", "the loss falls with the slices, slowly beyond ten", "xia-slices"),
    Item(
        NEWEST,
        "Figure C.12",
        "refuted",
        "at the same total and n of 5000 and more validation has four to 23 times the error of the oracle",
        "xia-validation",
    ),
    Item(FSIR, "Figure 1", "reproduced", "the tracing attack: sfumato audit trace"),
    Item(
        FSIR,
        "Figure 2",
        "reproduced",
        "MVG is nearer than IID and comes close to SIR as n grows, with the misprint of its ratio",
        "fsir-figure-2",
    ),
    Item(
        FSIR,
        "Figure 3",
        "partly reproduced",
        "angles shrink with the sites and MVG is nearer, also at n = 200, epsilon = 0.5, where the text has IID nearer",
        "fsir-figure-3",
    ),
    Item(
        FSIR,
        "Figure 4",
        "reproduced",
        "MVG is nearer than IID in all settings, with the misprint of its ratio; the text excepts small ones",
        "fsir-figure-4",
    ),
    Item(
        FSIR,
        "Table 1",
        "partly reproduced",
        "18 of 80 rows of IID are reached, with fitted truncation levels, and 75 of 80 rows of MVG are reached, with "
        "the misprint of its ratio",
        "fsir-table-1",
    ),
    Item(
        FSIR,
        "Table 2",
        "partly reproduced",
        "46 of 80 rows of IID are reached, with fitted truncation levels, and 79 of 80 rows of MVG are reached, with "
        "the misprint of its ratio",
        "fsir-table-2",
    ),
    Item(
        FSIR,
        "Table 3",
        "partly reproduced",
        "15 of 60 rows of IID are reached and 45 of 60 rows of MVG are reached; the filter's threshold is not printed: "
        "at chance level it keeps too little from ten sites on in models II and III",
        "fsir-table-3",
    ),
    Item(
        FSIR,
        "Table 4",
        "partly reproduced",
        "26 of 60 rows of IID are reached and 45 of 60 rows of MVG are reached; the filter's threshold is not printed: "
        "at chance level it keeps too little from ten sites on in models II and III",
        "fsir-table-4",
    ),
    Item(FSIR, "Figure 5", "not reproducible here", "the human-activity records cannot be had, only means of them"),
    Item(
        FSIR,
        "Figure 6",
        "reproduced",
        "but for the eleventh airline, which has 3175 flights; MVG is nearer than IID, neither is private",
        "fsir-flights",
    ),
    Item(
        GEP,
        "Experiments",
        "not reproducible here",
        "the text has no table and no figure, and its appendix is not at hand; its methods are rows of DP-SIR's tables",
    ),
    Item(
        IHT,
        "Experiments",
        "not reproducible here",
        "the paper has no table and no figure; LabelPrivateIHT is measured in benchmarks/results",
    ),
)
"""In the order of the papers."""


def by_paper() -> Iterator[tuple[str, list[Item]]]:
    """The items of each paper."""
    for paper, items in groupby(ITEMS, lambda item: item.paper):
        yield paper, list(items)
