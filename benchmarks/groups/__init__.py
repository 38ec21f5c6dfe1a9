"""The groups of rows, in the order of the table; each is a function from the material to its rows."""
