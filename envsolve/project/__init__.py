"""The settings of a project: ``[tool.envsolve]`` in its pyproject.toml, or the same keys in envsolve.toml.

:mod:`~envsolve.project.keys` defines the keys. :mod:`~envsolve.project.reading` reads them and reports every mistake
with its key and line. :mod:`~envsolve.project.json_schema` describes them for editors.
"""

from envsolve.project.project import Machine, Output, Part, Project, Settings
from envsolve.project.reading import find_project, project_file, read_project

__all__ = ["Machine", "Output", "Part", "Project", "Settings", "find_project", "project_file", "read_project"]
