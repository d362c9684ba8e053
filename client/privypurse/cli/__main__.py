"""``python -m privypurse.cli``: the command ``privypurse`` without its installed script."""

from privypurse.cli import main

main()
