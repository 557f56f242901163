"""`python -m operant` is `operant`."""

import sys

if not sys.flags.safe_path:
    # Python puts the current directory first, where a `torch.py` would be taken for torch.
    sys.path.append(sys.path.pop(0))

from operant.cli.main import main

sys.exit(main())
