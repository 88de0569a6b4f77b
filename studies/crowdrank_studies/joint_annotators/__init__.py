"""Object rankings from noisy preferences of several annotators [Gupta16]_: wines, digits and people."""

from .digit_tables import digits
from .people import rated_speech
from .wines import wine

__all__ = ["digits", "rated_speech", "wine"]
