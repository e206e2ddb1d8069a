"""Write a report: ``python -m sglaws report mylib.conformance:ADAPTERS``."""

import sys

from .report import main

if __name__ == "__main__":
    sys.exit(main())
