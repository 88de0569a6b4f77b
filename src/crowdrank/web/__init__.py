"""The collection service: a campaign from a file, requests to people and programs, judgments kept for good."""

from ..errors import MissingExtraError


def expect_extra() -> None:
    """Refuse to go on without the packages of the extra ``web``."""
    try:
        import fastapi  # noqa: F401
        import sqlalchemy  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(f"serve needs {error.name}; install it with pip install 'crowdrank[web]'") from None
