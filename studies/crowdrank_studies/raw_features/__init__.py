"""What features made of raw items are worth beside judgments: arguments and coded speech."""

from .arguments import argument_features
from .codecs import codec_listening

__all__ = ["argument_features", "codec_listening"]
