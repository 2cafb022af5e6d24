"""`python -m fastapi_core.testing.conformance`."""

import sys

from fastapi_core.testing.conformance.cli import main

if __name__ == "__main__":
    sys.exit(main())
