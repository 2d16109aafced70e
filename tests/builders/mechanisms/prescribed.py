"""Noise of chosen values, for runs whose every step is known."""

from __future__ import annotations

from app.auditing.laws.scripted_noise import NOTHING, PrescribedGaussian, PrescribedLaplace

__all__ = ["NOTHING", "PrescribedGaussian", "PrescribedLaplace"]
