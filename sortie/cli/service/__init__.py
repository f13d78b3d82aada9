"""``sortie service``: the daemon as a unit of systemd."""
