"""A headless turn of kiro-cli as text: its command line, what it prints, how it closes."""
