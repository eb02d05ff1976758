"""`python -m loopwright`: the same as the command `loopwright`."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python puts the current folder first, whose app.py or typer.py would be imported instead of the program's modules.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from app.entry import main

    sys.exit(main())
