"""`python -m spdsl`: the command line."""

from __future__ import annotations

from spdsl.cli import main

if __name__ == "__main__":
    main()
