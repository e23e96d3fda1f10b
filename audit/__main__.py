"""`make audit`: run all parts and write docs/audit.md. Exits with 1 if a claim does not hold.

python -m audit [--quick] [PART ...]
"""

import argparse
import sys
from importlib import import_module

from audit.page import write_page
from audit.sections import measured

# In the order of the page. Each part is a module with a function `audit(quick)`.
PARTS = (
    "recovery",
    "membership",
    "whole_path",
    "float_noise",
    "averaging",
    "side_doors",
    "readers",
    "exactness",
    "calibration",
    "law",
    "law_nhds",
    "kills",
    "fuzzing",
)


def main() -> int:
    """Run the named parts, or all."""
    parser = argparse.ArgumentParser(prog="python -m audit", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one of {', '.join(PARTS)}; all by default")
    parser.add_argument("--quick", action="store_true", help="run small sizes and write no page")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.parts) - set(PARTS))
    if unknown:
        parser.error(f"PART must be one of {', '.join(PARTS)}, got {', '.join(unknown)}")
    broken = 0
    for name in chosen.parts or PARTS:
        print(f"{name} …", flush=True)
        section = measured(name, import_module(f"audit.{name}").audit, quick=chosen.quick)
        for check in section["checks"]:
            print(
                f"  {'holds ' if check['holds'] else 'BROKEN'}  {check['claim']}: {check['found']}",
                flush=True,
            )
            broken += not check["holds"]
        print(f"  {section['seconds']} s", flush=True)
    if not chosen.quick:
        write_page(PARTS)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
