"""The models, a room each: method files in front, their parts beside them, their compiled loops in ``kernels``."""
