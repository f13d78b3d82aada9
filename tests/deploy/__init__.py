"""What stands in ``deploy``: tried with the programs that read it, where they are installed."""
