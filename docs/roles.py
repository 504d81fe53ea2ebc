"""Docstrings name things as :func:`powersum.solve`; the site shows the name alone."""

import re

ROLE = re.compile(r":(?:class|func|meth|mod|attr):<code>~?([^<]+)</code>")


def on_page_content(html: str, **_: object) -> str:
    """Called by MkDocs with each page."""
    return ROLE.sub(r"<code>\1</code>", html)
