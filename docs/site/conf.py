"""How Sphinx shows the pages. `build.py` puts them together and calls it."""

from __future__ import annotations

project = "Penstock"
copyright = "the authors of Penstock"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "Penstock"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#00695c", "color-brand-content": "#00695c"},
    "dark_css_variables": {"color-brand-primary": "#4db6ac", "color-brand-content": "#4db6ac"},
}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# Signatures as they are written in the source, one parameter on a line when they are long.
python_maximum_signature_line_length = 100
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries = False  # thousands of methods in every page's tree make the build three times as long

# Two hyphens are a flag, not a dash.
smartquotes = False

# Blocks without a language are output and drawings.
highlight_language = "text"
