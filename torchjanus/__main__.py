"""`python -m torchjanus`: the same as the command `torchjanus`."""

from .command import main

raise SystemExit(main())
