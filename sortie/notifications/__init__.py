"""Notifications: what of all that happens people and other systems are told, and how it is sent."""
