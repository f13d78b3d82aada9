"""What trackers over HTTP share besides the client: see the README of ``sortie/http``."""
