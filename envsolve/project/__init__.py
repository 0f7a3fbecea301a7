"""What a project asks of envsolve: ``[tool.envsolve]`` in its pyproject.toml, or the same keys in envsolve.toml.

:mod:`~envsolve.project.keys` says what may stand there, :mod:`~envsolve.project.reading` reads it and reports every
mistake with its key and line, :mod:`~envsolve.project.json_schema` tells it to editors.
"""

from envsolve.project.project import Machine, Output, Part, Project, Settings
from envsolve.project.reading import find_project, project_file, read_project

__all__ = ["Machine", "Output", "Part", "Project", "Settings", "find_project", "project_file", "read_project"]
