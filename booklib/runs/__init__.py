"""How a network is run at the size of a paper, and how its results are stored."""
