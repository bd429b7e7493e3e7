"""Certified conductance: proofs, and a checker that shares no code with them."""

from ssdfl.graph.certified.certificate import CERTIFY_SECONDS, Certificate, certify
from ssdfl.graph.certified.check import Refused, check_certificate

__all__ = ["CERTIFY_SECONDS", "Certificate", "Refused", "certify", "check_certificate"]
