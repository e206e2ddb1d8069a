"""Hand out assignments and grade submissions: see ``python -m coursework``."""
