"""The joint influence of scores of nodes: one edge has two ends and few common neighbours.

Let an inner node be joined to both ends. If its score moves by at most a steps one way when the
edge is added, k scores move together by at most 2·one + k·a, instead of 2k·one. Rounding scores
down keeps this: a real change in [−z, 0] has its floor in [−⌈z⌉, 0].
"""

from mechanisms.model.candidates import graph_domain
from mechanisms.model.domains import Dataset
from mechanisms.model.joint_influence import EdgeInfluence, JointInfluence
from mechanisms.utilities.utility import InnerChange


def edge_influence(
    dataset: Dataset, change: InnerChange, cap: int, score_bits: int
) -> JointInfluence:
    """The joint influence of scores ⌊2^q·(u − K)/Δ⌋, K a function of the node's degree alone.

    This is the global score for K = 0, and the shifted one where δ follows from the degree.

    Args:
        change: of the utilities of inner nodes, in grid steps.
        cap: Δ in grid steps.
    """
    domain = graph_domain(dataset)
    one = 1 << score_bits
    fall, rise = (min(one, -(-(part << score_bits) // cap)) for part in (change.fall, change.rise))
    return EdgeInfluence(domain.nodes, one, common_neighbours(dataset), fall, rise)


def inner_units(dataset: Dataset, change: InnerChange, score_bits: int) -> JointInfluence:
    """The same where an inner score may move by one unit in the direction of its utility.

    This is the dampened score of a utility whose δ follows from the degree alone.
    """
    one = 1 << score_bits
    fall, rise = one * bool(change.fall), one * bool(change.rise)
    return EdgeInfluence(graph_domain(dataset).nodes, one, common_neighbours(dataset), fall, rise)


def all_fall(dataset: Dataset, score_bits: int) -> JointInfluence:
    """Added edges lower the scores of any nodes but the ends, by one unit at most."""
    nodes, one = graph_domain(dataset).nodes, 1 << score_bits
    return EdgeInfluence(nodes, one, max(nodes - 2, 0), one, 0)


def common_neighbours(dataset: Dataset) -> int:
    """The most nodes that are joined to both ends of an edge; public."""
    domain = graph_domain(dataset)
    return max(min(domain.max_degree - 1, domain.nodes - 2), 0)
