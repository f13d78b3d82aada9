"""The dashboard: pages for people, rendered here, and kept up to date while somebody looks.

``sources`` is what pages are made from, ``rows`` and ``board`` what of it is shown, ``pieces`` the
parts that a page consists of, ``live_page`` what has changed in them, ``routes`` the addresses.
Nothing is imported here: ``sources`` and ``activity`` are wanted without the templates.
"""
