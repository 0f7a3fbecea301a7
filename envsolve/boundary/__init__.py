"""The trust boundary: how envsolve reads files, runs programs and prints text that it does not trust.

``files`` reads files of projects and environments, ``programs`` finds and runs programs, ``answers`` runs programs
whose output cannot be trusted, ``secrets`` removes logins and tokens, ``display`` makes text from outside safe to
print. SECURITY.md says what is trusted and what is not.
"""
