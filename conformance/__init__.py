"""Other libraries against their exact laws, each in an environment of its own."""
