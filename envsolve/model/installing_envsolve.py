"""How jobs, images and users install envsolve itself.

envsolve is not on any package index, and anyone could register its name there. So neither the code nor the
documentation installs it by name: jobs and images read its address from a variable. To publish it, change
``REQUIREMENT`` and ``REMARK``, the pages that name ``ENVSOLVE_URL``, and tests/model/test_installing_envsolve.py.
"""

REQUIREMENT = "envsolve@$ENVSOLVE_URL"
"""What pip and uv install, as a word for a shell. Both refuse ``envsolve@``, which results if the variable is not
set."""
REQUIREMENT_WITH_CONDA = '"envsolve[conda]@$ENVSOLVE_URL"'
"""The same with the packages that lock and install conda packages."""
REMARK = "ENVSOLVE_URL is the address of a .zip of envsolve. It is on no package index: do not install it by its name."
CONDA_EXTRA = ("py-rattler", "conda-lock")
"""The packages of the extra ``conda`` (pyproject.toml), for hints to users who already have envsolve."""
