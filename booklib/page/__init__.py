"""The parts that a page shows: checked claims, figures, tables, the scoreboard."""
