"""`python -m armslength` is the command `armslength`."""

from armslength.cli.main import main

if __name__ == "__main__":
    main()
