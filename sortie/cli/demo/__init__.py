"""The demo: a directory of issues that simulated agents work on."""
