"""A readable description of cluster centres for the page of an answer."""

from collections.abc import Mapping
from math import dist
from typing import Any


def draw(answer: Mapping[str, Any]) -> list[dict[str, str]]:
    """Returns for each centre the closest level (value) of every attribute.

    The coordinates of a centre join one vector per attribute, in the order of the encoding.
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
