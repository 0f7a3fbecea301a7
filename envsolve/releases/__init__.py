"""Read published wheels into rows of the matrix.

The modules:

    wheels        the wheels that an index lists, by project, version and platform
    device_code   architecture lists in libraries, and the C library that they need
    compiler      the toolkit that made PTX
    constants     versions that a compiler put into instructions
    requirements  what Requires-Dist requires, in the terms of the matrix
    reader        what every reader returns: rows, each with the wheels it was read from
    frameworks    one reader per framework: from wheels to rows
"""
