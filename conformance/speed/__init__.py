"""How fast libraries take a step: one worker of its own environment for each."""
