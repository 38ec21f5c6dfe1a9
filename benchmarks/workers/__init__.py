"""What runs in the environments: one small program for each side of a comparison."""
