"""Rows that learning takes without privacy, every constant stated.

The papers leave these to "standard results"; here are such results with constants.
``d`` is the VC dimension, at least 1, and ln the natural logarithm.  Each value is a
real number, to be rounded up, and is large enough for the growth function to be at
most ``(2 e n / d)^d``, by Sauer's lemma.

Sources: Blumer, Ehrenfeucht, Haussler, Warmuth, *Learnability and the
Vapnik-Chervonenkis dimension*, 1989 (BEHW), Theorem 2.1 and the bound that proves it;
Anthony, Bartlett, *Neural Network Learning: Theoretical Foundations*, 1999 (AB),
Theorems 4.2 and 4.3.
"""

from __future__ import annotations

import math


def realizable_rows(*, alpha: float, beta: float, dimension: int) -> float:
    """Rows at which every hypothesis without an error on them has an error rate of alpha.

    ``max(4 log2(2/beta), 8 d log2(13/alpha)) / alpha``: BEHW Theorem 2.1.

    Args:
        alpha: error rate, in (0, 1).
        beta: probability at which it fails, in (0, 1).
        dimension: d of the class, in which one hypothesis makes no error at all.

    """
    confidence = 4 * math.log2(2 / beta)
    capacity = 8 * dimension * math.log2(13 / alpha)
    return max(confidence, capacity) / alpha


def agnostic_rows(*, alpha: float, beta: float, dimension: int) -> float:
    """Rows at which the best hypothesis on them is within alpha of the best of all.

    ``64 (2 d ln(12/alpha) + ln(4/beta)) / alpha^2``: AB Theorem 4.2.

    Args:
        alpha: excess error rate, in (0, 1).
        beta: probability at which it fails, in (0, 1).
        dimension: d of the class.

    """
    terms = 2 * dimension * math.log(12 / alpha) + math.log(4 / beta)
    return 64 * terms / alpha / alpha


def disagreement_rows(*, alpha: float, beta: float, dimension: int) -> float:
    """Rows on which every two hypotheses disagree as often as in truth, within alpha.

    ``16 (4 d ln(8/alpha) + ln(4/beta)) / alpha^2``.  Pairs have at most the square of
    the class's growth, so AB Theorem 4.3 asks for ``n alpha^2 / 8 >= 2 d ln(2 e n / d)
    + ln(4/beta)``; and ``2 d ln n <= n alpha^2 / 16 + 2 d ln(32 d / (e alpha^2))``.

    The error rates of single hypotheses are then right within alpha as well.

    Args:
        alpha: how far a rate may be off, in (0, 1).
        beta: probability at which one is further off, in (0, 1).
        dimension: d of the class.

    """
    terms = 4 * dimension * math.log(8 / alpha) + math.log(4 / beta)
    return 16 * terms / alpha / alpha


def cover_rows(*, alpha: float, beta: float, dimension: int) -> float:
    """Points such that hypotheses which agree on all of them disagree on alpha at most.

    ``4 (log2(2/beta) + 2 d log2(24/alpha)) / alpha``.  BEHW's bound for pairs asks for
    ``n alpha ln(2) / 2 >= 2 d ln(2 e n / d) + ln(2/beta)``; and ``2 d ln n <=
    n alpha ln(2) / 4 + 2 d ln(8 d / (e alpha ln 2))``, where ``16 / ln 2 < 24``.

    Args:
        alpha: share of the population, in (0, 1).
        beta: probability at which two such hypotheses disagree on more, in (0, 1).
        dimension: d of the class.

    """
    terms = math.log2(2 / beta) + 2 * dimension * math.log2(24 / alpha)
    return 4 * terms / alpha
