"""The papers' estimators among the family: an entry point names this mapping, so that nothing imports it from below."""

FAMILY = {
    "dp-ini": "sfumato.research.sir.DPIni",
    "dp-sir": "sfumato.research.sir.DPSIR",
    "dp-sini": "sfumato.research.sir.DPSIni",
    "dp-ssir": "sfumato.research.sir.DPSSIR",
    "dp-spca": "sfumato.research.components.DPSPCA",
    "rayleigh-flow-sir": "sfumato.research.sir.RayleighFlowSIR",
    "rayleigh-flow-pca": "sfumato.research.components.RayleighFlowPCA",
    "rayleigh-flow-lda": "sfumato.research.pairs.RayleighFlowLDA",
    "rayleigh-flow-cca": "sfumato.research.pairs.RayleighFlowCCA",
    "truncated-rayleigh-flow-sir": "sfumato.research.sir.TruncatedRayleighFlowSIR",
    "truncated-rayleigh-flow-pca": "sfumato.research.components.TruncatedRayleighFlowPCA",
}
"""Estimators by the name they have at the command line."""
