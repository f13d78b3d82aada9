"""What the test servers of trackers over HTTP have in common. See the README of this folder."""
