"""Deliveries of webhooks: taken over HTTP, verified, and handed on as what they name."""
