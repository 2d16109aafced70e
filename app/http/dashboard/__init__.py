"""The operator's page: one HTML file with its styles and scripts, served from the package."""
