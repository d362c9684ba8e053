"""What the page of an answer shows of its centres."""

from collections.abc import Mapping
from math import dist
from typing import Any


def draw(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    """Of each centre, by attribute, the level whose vector is closest.

    Centres live in the encoding: the vectors of the attributes' values one after another.
    """
    centres = []
    for point in answer["centres"]:
        levels, start = {}, 0
        for attribute in answer["encoding"]["attributes"]:
            width = len(attribute["vectors"][0])
            part, start = point[start : start + width], start + width
            away = [dist(part, vector) for vector in attribute["vectors"]]
            levels[attribute["name"]] = attribute["values"][away.index(min(away))]
        centres.append(levels)
    return centres
