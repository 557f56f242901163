"""`python -m operant` is `operant`."""

import sys

from operant.cli.main import main

sys.exit(main())
