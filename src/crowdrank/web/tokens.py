"""Tokens: made here, shown once, kept as a fingerprint only."""

from __future__ import annotations

import hashlib
import hmac
import secrets

OWNER, INVITE, ANNOTATOR = "cro_", "cri_", "cra_"


def new_token(prefix: str) -> str:
    """Return a new token of 32 random bytes."""
    return prefix + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """Return the fingerprint that is kept of a token."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def same(one: str, other: str) -> bool:
    """Return whether two fingerprints are equal, in a time that does not tell where they differ."""
    return hmac.compare_digest(one.encode(), other.encode())
