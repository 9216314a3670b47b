"""``python -m niah``: the same as the command ``niah``."""

from niah.cli.app import main

if __name__ == "__main__":
    main()
