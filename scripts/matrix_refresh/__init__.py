"""Refreshing the compatibility matrix from the wheels that were published, with the readers of envsolve.releases.

The map:

    index         which wheels an index lists, by project, version and platform
    credentials   an index's user and password: sent to it alone, never kept or printed
    wheel         one wheel at a distance: its members over HTTP range requests
    cache         files kept for the next run
    observation   what was read of each wheel, kept on disk: a run resumes, and works offline
    toml_text     one field of a TOML file changed, every other byte as it was
    toml_file     rows brought up to what was read; hand-written rows, fields and comments stay
    report        the difference, for people
    ending        how a script ends: interrupted, or where its output goes nowhere
    run           all of it together: reading in parallel, comparing
"""
