"""`python -m patra` is the command line."""

from patra.cli.main import main

if __name__ == "__main__":
    main()
