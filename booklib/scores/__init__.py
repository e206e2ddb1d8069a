"""What a number over samples and over seeds means."""
