"""Attacks on our own claims: what an attacker can prove about a mechanism, with confidence.

An audit runs a mechanism on two neighbouring data sets and bounds its privacy loss from *below*. It cannot prove a
claim, only refute it; how near it comes (the tightness) says how much would have been noticed. A replay forces the
releases of one data set on the fit of its neighbour: then nothing else may differ.
"""

from sfumato.audit.blackbox import AuditResult as AuditResult
from sfumato.audit.blackbox import audit as audit
from sfumato.audit.blackbox import couple as couple
from sfumato.audit.blackbox import gaussian_check as gaussian_check
from sfumato.audit.tape import Replayed as Replayed
from sfumato.audit.tape import replay as replay
