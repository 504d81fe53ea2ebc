"""The server of the page: one process, this machine only, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable

import uvicorn

from powersum.app.explore.server import Explorer
from powersum.core.errors import InputError
from powersum.model.diagram import Diagram
from powersum.model.model import Model

LOOPBACK = "127.0.0.1"
MOST_SHOWN = 120
"""Letters of a question that the address shows."""
LAST_SECONDS = 2
"""What open connections have to end after Ctrl-C."""


def serve(
    model: Model | Diagram,
    file: str,
    *,
    names: str | None = None,
    fragment: str = "",
    port: int = 0,
    browser: bool = True,
    seconds: float = 20.0,
    announce: Callable[[str], None] = print,
) -> None:
    """Serve the page about a model until Ctrl-C.

    Parameters
    ----------
    model, file, names
        The model or diagram, and what its file and that of its names are called.
    fragment
        The question to begin with, as the page's links have it.
    port
        The port; 0 for any that is free.
    browser
        Whether to open the page in a browser.
    seconds
        How long answers are looked for, unless the page asks for another time.
    announce
        Is told the address.
    """
    token = secrets.token_urlsafe(18)
    # A long question is in the page alone: nobody reads an address of some thousand letters.
    shown = f"#{fragment}" if 0 < len(fragment) <= MOST_SHOWN else ""
    link = "" if shown else fragment
    if isinstance(model, Diagram):
        from powersum.app.explore.diagram import DiagramExplorer

        explorer: Explorer = DiagramExplorer(model, file, token, link=link, seconds=seconds)
    else:
        explorer = Explorer(model, file, token, names=names, link=link, seconds=seconds)
    with _listening(port) as listener:
        address = f"http://{LOOPBACK}:{listener.getsockname()[1]}/?token={token}{shown}"
        config = uvicorn.Config(
            explorer.app(),
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            limit_concurrency=200,
            timeout_graceful_shutdown=LAST_SECONDS,
        )
        server = uvicorn.Server(config)
        announce(address)
        if browser:
            # A browser that is started in a terminal would hold everything up.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            # The way to end it.
            pass
        finally:
            explorer.runs.stop_all()


def _listening(port: int) -> socket.socket:
    """A socket of this machine alone; the port must be free."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        # A port that was used a moment ago is free; one that is in use is not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        # From now on whoever comes waits until the server is there.
        listener.listen()
    except (OSError, OverflowError) as error:
        listener.close()
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"--port {port}: cannot be used ({reason}); without it any free one is taken") from None
    return listener
