"""Best approximations by polynomials and rational functions (Remez's exchange algorithm), in mpmath.

An approximation minimises the largest ``weight(x) * |approximation(x) - f(x)|`` over a dense grid of Chebyshev nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mpmath as mp

mp.mp.dps = 60
Function = Callable[[Any], Any]


def grid(low: float, high: float, count: int, middle: float = 0) -> list[Any]:
    """Chebyshev nodes of the interval, and its ends, rising; if ``middle``, those of (x - middle) / (x + middle)."""
    low, high = mp.mpf(low), mp.mpf(high)
    if middle:
        low, high = ((x - middle) / (x + middle) for x in (low, high))
    inner = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    nodes = [low, *inner, high]
    return [middle * (1 + u) / (1 - u) for u in nodes] if middle else nodes


def minimax(
    f: Function,
    low: float,
    high: float,
    degree: int,
    below: int = 0,
    weight: Function = lambda x: 1,
    middle: float = 0,
) -> tuple[list[Any], list[Any], Any]:
    """Coefficients, lowest first, of the best ``P/Q`` with ``P`` of ``degree`` and ``Q`` of degree ``below``.

    Q begins with 1. The third result is the largest weighted error. `f` may fail at 0, where its weight should vanish.
    """
    unknowns = degree + 1 + below
    xs = [x for x in grid(low, high, 24 * unknowns, middle) if x != 0]
    wanted, weights = [mp.mpf(f(x)) for x in xs], [mp.mpf(weight(x)) for x in xs]
    places = [round(i * (len(xs) - 1) / unknowns) for i in range(unknowns + 1)]
    error, p, q = mp.mpf(0), [mp.mpf(0)], [mp.mpf(1)]
    if below:
        errors, q = _least_squares(xs, wanted, weights, degree, below)
        places = _exchanged(errors, unknowns + 1)
        error = sum(map(abs, (errors[i] for i in places))) / len(places) * mp.sign(errors[places[0]])
    for _ in range(60):
        for _ in range(6 if below else 1):  # Newton's method: the levelled error is multiplied by Q
            matrix, right = mp.matrix(unknowns + 1), mp.matrix(unknowns + 1, 1)
            for row, i in enumerate(places):
                level = (-1) ** row / weights[i]
                for j in range(degree + 1):
                    matrix[row, j] = xs[i] ** j
                for j in range(1, below + 1):
                    matrix[row, degree + j] = -(wanted[i] + level * error) * xs[i] ** j
                slope = level * mp.polyval(q[::-1], xs[i])
                matrix[row, unknowns] = -slope
                right[row] = wanted[i] + (level - slope) * error
            solved = mp.lu_solve(matrix, right)
            error, p = solved[unknowns], list(solved[: degree + 1])
            q = [mp.mpf(1), *solved[degree + 1 : unknowns]]
        errors = [weights[i] * (mp.polyval(p[::-1], x) / mp.polyval(q[::-1], x) - wanted[i]) for i, x in enumerate(xs)]
        places = _exchanged(errors, unknowns + 1)
        worst = max(map(abs, errors))
        if worst <= abs(error) * mp.mpf("1.001"):
            break
    return p, q, worst


def _least_squares(
    xs: Sequence[Any], wanted: Sequence[Any], weights: Sequence[Any], degree: int, below: int
) -> tuple[list[Any], list[Any]]:
    """Weighted errors, and Q, of the rational function with the least squares of errors: where the exchange begins."""
    rows = [[x**j for j in range(degree + 1)] + [-f * x**j for j in range(1, below + 1)] for x, f in zip(xs, wanted)]
    scales, errors, q = list(weights), list[Any](), list[Any]()
    for _ in range(6):  # the linear equations are multiplied by Q: divide by the previous one (Sanathanan and Koerner)
        matrix = mp.matrix([[s * cell for cell in row] for s, row in zip(scales, rows)])
        right = mp.matrix([s * f for s, f in zip(scales, wanted)])
        solved = mp.lu_solve(matrix.T * matrix, matrix.T * right)
        p, q = list(solved[: degree + 1]), [mp.mpf(1), *solved[degree + 1 :]]
        below_line = [mp.polyval(q[::-1], x) for x in xs]
        scales = [w / y for w, y in zip(weights, below_line)]
        errors = [s * mp.polyval(p[::-1], x) - w * f for s, w, x, f in zip(scales, weights, xs, wanted)]
    return errors, q


def _exchanged(errors: Sequence[Any], count: int) -> list[int]:
    """Places of the extrema, of alternating sign, ``count`` of them with the largest."""
    runs: list[int] = []
    for i, e in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        if len(runs) == count + 1:  # an end has to go, or signs would not alternate
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        else:
            low = min(range(len(runs) - 1), key=lambda i: max(abs(errors[runs[i]]), abs(errors[runs[i + 1]])))
            del runs[low : low + 2]
    if len(runs) < count:
        raise ArithmeticError(f"{len(runs)} extrema, not {count}: the degree is too high for the precision")
    return runs
