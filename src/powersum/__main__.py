"""``python -m powersum`` is the command line, where the script of that name is not on the path."""

from __future__ import annotations

from powersum.app.cli import main

if __name__ == "__main__":
    main()
