"""Reading releases out of the wheels that were published, into rows of the matrix.

The map:

    wheels        which wheels an index lists, by project, version and platform
    device_code   architecture lists in libraries, and the C library that they need
    compiler      the toolkit that wrote PTX
    constants     versions that a compiler put into instructions
    requirements  what Requires-Dist requires, in the words of the matrix
    reader        what every reader gives: rows, each with the wheels it was read from
    frameworks    one reader per framework: from wheels to rows
"""
