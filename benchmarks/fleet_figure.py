"""The figure of how the costs of a fleet grow with its hosts, drawn from what :mod:`benchmarks.fleet` has measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

WIDTH, HEIGHT, LEFT, BOTTOM, GAP = 400, 220, 60, 40, 20
"""Of one panel, in pixels."""

STYLE = """
    svg { color-scheme: light dark; }
    text { font: 12px sans-serif; fill: #1b1f24; }
    .paper { fill: #ffffff; }
    .axis { fill: none; stroke: #57606a; }
    .goal { fill: none; stroke: #9a6700; stroke-dasharray: 5 4; }
    .line { fill: none; stroke: #0969da; stroke-width: 2; }
    .point { fill: #0969da; }
    .center { text-anchor: middle; }
    .end { text-anchor: end; }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3; }
      .paper { fill: #0d1117; }
      .axis { stroke: #9da7b1; }
      .line { stroke: #58a6ff; }
      .point { fill: #58a6ff; }
    }
"""


def draw(panels: Mapping[str, tuple[Sequence[tuple[int, float]], float]]) -> str:
    """
    :param panels: by title, the points (number of hosts, value) and the goal.
    :returns: the figure as SVG, with a logarithmic axis of hosts.
    """
    drawn = "".join(_panel(number, title, *panel) for number, (title, panel) in enumerate(panels.items()))
    width = len(panels) * (WIDTH + GAP)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT}" width="{width}" height="{HEIGHT}" '
        'role="img" aria-labelledby="title desc">\n  <title id="title">A fleet and its number of hosts</title>\n'
        f'  <desc id="desc">{"; ".join(panels)}.</desc>\n  <style>{STYLE}  </style>\n'
        f'  <rect class="paper" width="{width}" height="{HEIGHT}"/>\n{drawn}</svg>\n'
    )


def _panel(number: int, title: str, points: Sequence[tuple[int, float]], goal: float) -> str:
    first, last = math.log(points[0][0]), math.log(points[-1][0])
    top = 1.15 * max(goal, *(value for _, value in points))
    left, right = number * (WIDTH + GAP) + LEFT, number * (WIDTH + GAP) + WIDTH - 10
    upper, lower = 30, HEIGHT - BOTTOM

    def x(hosts: int) -> float:
        return left + 10 + (math.log(hosts) - first) / ((last - first) or 1) * (right - left - 20)

    def y(value: float) -> float:
        return lower - value / top * (lower - upper)

    made = [f'<text class="center" x="{(left + right) / 2:.0f}" y="18">{title}</text>']
    made += [f'<path class="axis" d="M{left} {upper}V{lower}H{right}"/>']
    made += [f'<path class="goal" d="M{left} {y(goal):.1f}H{right}"/>']
    made += [f'<text class="end" x="{left - 6}" y="{y(goal) + 4:.1f}">{goal:g}</text>']
    made += [f'<text class="end" x="{left - 6}" y="{lower + 4}">0</text>']
    made += [f'<path class="line" d="M{" L".join(f"{x(hosts):.1f} {y(value):.1f}" for hosts, value in points)}"/>']
    for hosts, value in points:
        made += [f'<circle class="point" cx="{x(hosts):.1f}" cy="{y(value):.1f}" r="3"/>']
        made += [f'<text class="center" x="{x(hosts):.1f}" y="{lower + 16}">{hosts}</text>']
        made += [f'<text class="center" x="{x(hosts):.1f}" y="{y(value) - 8:.1f}">{value:.3g}</text>']
    made += [
        f'<text class="center" x="{(left + right) / 2:.0f}" y="{HEIGHT - 8}">hosts (dashed: the goal at 50)</text>'
    ]
    return "".join(f"  {line}\n" for line in made)
