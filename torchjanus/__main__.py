"""`python -m torchjanus`: the same as the command `torchjanus`."""

from .start import main

raise SystemExit(main())
