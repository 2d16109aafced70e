"""Scikit-learn's estimators as learners: chosen, fitted on chunks, laid out to vote together."""
