"""``crowdrank serve``: collect judgments from people in a browser and from programs."""

from __future__ import annotations

from typing import Annotated

import typer

from .help import examples
from .options import Quiet

EXAMPLES = examples(
    ("see it work on made-up items, in your browser", "crowdrank serve --demo"),
    ("collect what a campaign file asks for", "crowdrank serve campaign.toml"),
    ("behind a proxy", "crowdrank serve campaign.toml --public-url https://votes.example.org"),
    ("on PostgreSQL, two processes", "crowdrank serve campaign.toml --db postgresql:///votes --workers 2"),
    ("check all totals by counting again", "crowdrank serve campaign.toml --check"),
)


def serve(
    *,
    campaign: Annotated[
        str | None, typer.Argument(metavar="[CAMPAIGN.toml]", help="What to ask, of whom.", show_default=False)
    ] = None,
    demo: Annotated[bool, typer.Option("--demo", help="A small campaign of made-up items.")] = False,
    db: Annotated[
        str | None,
        typer.Option("--db", metavar="FILE|URL", help="SQLite file (by default beside the campaign) or postgresql://..."),
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535, metavar="N", help="Port to listen on.")] = 8000,
    public_url: Annotated[
        str, typer.Option("--public-url", metavar="URL", help="The address that browsers show, if it is another.")
    ] = "",
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Take the caller's address from X-Forwarded-For.")
    ] = False,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, metavar="N", help="Processes; more than one needs PostgreSQL.")
    ] = 1,
    token_file: Annotated[
        str | None, typer.Option("--token-file", metavar="FILE", help="Write the owner's token there.")
    ] = None,
    new_token: Annotated[
        bool, typer.Option("--new-token", help="Make a new owner's token; the old one stops working.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Check all totals by counting again, and exit.")] = False,
    copy_to: Annotated[
        str | None, typer.Option("--copy-to", metavar="URL", help="Copy a paused or closed campaign there and exit.")
    ] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Collect judgments from people in a browser and from programs.

    They get requests that a scheme chooses. The first start sets the campaign up and prints the owner's token
    once; later starts continue it.
    """
    from ..errors import ParameterError
    from ..web import server

    server.expect_extra()
    if demo == (campaign is not None):
        raise ParameterError("name a campaign file, or give --demo; not both")
    if demo:
        if check or copy_to is not None:
            raise ParameterError("--demo has nothing to check or copy; name a campaign file")
        from ..web.demo import serve_demo

        serve_demo(host=host, port=port, db=db, quiet=quiet)
        return
    assert campaign is not None
    options = server.Options(
        campaign=campaign, db=db or server.database_beside(campaign), host=host, port=port, public_url=public_url,
        behind_proxy=behind_proxy, workers=workers, log_calls=not quiet,
    )  # fmt: skip
    if check:
        from ..web.upkeep import check as recount

        typer.echo(recount(options))
        return
    if copy_to is not None:
        from ..web.upkeep import copy

        typer.echo(copy(options, copy_to))
        return
    server.check_url(options)
    server.expect_port(options)
    server.announce(options, token_file, new_token=new_token)
    server.run(options)
