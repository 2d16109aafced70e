"""A plan and a prediction as documents (JSON) and as sentences."""
