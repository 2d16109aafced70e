"""How long the budget lasts: rates, forecasts and the alarm of the dashboard."""
