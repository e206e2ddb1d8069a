"""What a page shows: checked claims, figures, tables, the scoreboard."""
