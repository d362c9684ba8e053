"""Real graphs for benchmarks: ``NAME.edges.csv.gz`` with a header ``source,target``."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from pathlib import Path

import numpy as np
import pyarrow.csv
from numpy.typing import NDArray

EdgeList = tuple[NDArray[np.int32], NDArray[np.int32], int]


def data_option(parser: ArgumentParser) -> None:
    """Add ``--data DIR``; without it the folder is $PRIVYPURSE_DATA."""
    folder = os.environ.get("PRIVYPURSE_DATA")
    parser.add_argument(
        "--data",
        type=Path,
        default=folder and Path(folder),
        required=not folder,
        help="folder of NAME.edges.csv.gz files (default: $PRIVYPURSE_DATA)",
    )


def read_edge_list(folder: Path, name: str) -> EdgeList:
    """Sources, targets and the number of nodes; ids numbered by size."""
    table = pyarrow.csv.read_csv(folder / f"{name}.edges.csv.gz")
    ends = [table["source"].to_numpy(), table["target"].to_numpy()]
    nodes = np.unique(np.concatenate(ends))
    sources, targets = (np.searchsorted(nodes, column).astype(np.int32) for column in ends)
    return sources, targets, len(nodes)


def read_nodes(folder: Path, name: str) -> list[int]:
    """The ids of the nodes, in ascending order."""
    table = pyarrow.csv.read_csv(folder / f"{name}.edges.csv.gz")
    ends = [table["source"].to_numpy(), table["target"].to_numpy()]
    nodes: list[int] = np.unique(np.concatenate(ends)).tolist()
    return nodes
