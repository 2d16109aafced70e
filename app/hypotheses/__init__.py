"""Where users' own predictors have always imported from; the code is ``app/learning``."""
