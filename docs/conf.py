"""The documentation as Sphinx builds it: ``scripts/docs``."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext")]

from envsolve import __version__  # noqa: E402 - as the lines around it

project = "envsolve"
author = "The envsolve developers"
copyright = "The envsolve developers"  # noqa: A001 - Sphinx calls it so
version = release = __version__

extensions = ["generated_reference", "myst_parser", "sphinx_copybutton"]
exclude_patterns = ["_ext"]
nitpicky = True
smartquotes = False  # quotes in commands are to be copied
suppress_warnings = ["config.cache"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"

html_theme = "pydata_sphinx_theme"
html_title = "envsolve"
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_extra_path = ["envsolve.schema.json", "llms.txt", "schemas"]
