"""What a statistics table is made of: dichotomies, cells and grids."""
