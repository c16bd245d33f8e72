"""The option that all benchmarks have: as little as possible, to see that everything in them still runs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace


def parse(parser: ArgumentParser, **smallest: float) -> Namespace:
    """
    Read the command line.

    :param smallest: the sizes that ``--smallest`` puts in place of the usual and the given ones.
    """
    parser.add_argument(
        "--smallest", action="store_true", help="only see that all of it runs; the numbers mean nothing"
    )
    options = parser.parse_args()
    if options.smallest:
        vars(options).update(smallest)
    return options
