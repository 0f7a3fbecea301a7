"""The trust boundary: how envsolve reads files, runs programs and shows text that it does not trust.

``files`` reads what a project or an environment names, ``programs`` finds and runs programs, ``answers`` asks those
that print what they like, ``secrets`` removes logins and tokens, ``display`` makes text from outside safe to print.
SECURITY.md says what is trusted and what is not.
"""
