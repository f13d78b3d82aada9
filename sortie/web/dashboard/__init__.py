"""The dashboard: pages for people, rendered here, and kept up to date while a browser shows them.

``board`` and ``issue_page`` say what is on a page, ``pieces`` are the parts that a page consists of
and what has changed in them, ``painter`` makes HTML of them, ``routes`` are the addresses.
"""
