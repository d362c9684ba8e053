"""``python -m privypurse.cli``: the command where no script is installed, as in a checkout."""

from privypurse.cli import main

main()
