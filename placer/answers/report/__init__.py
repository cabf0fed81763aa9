"""The report: one HTML page of a cluster, of what a placement makes of it, and of what is proved.

Belongs here: telling the files apart, the page and its data. Does not: deciding, judging, measuring, the command line.
The page builds everything from JSON by text nodes; its Content-Security-Policy forbids all else.
"""

from placer.answers.report.data import contents, contents_of_result
from placer.answers.report.inputs import Inputs, told_apart
from placer.answers.report.pages import page, write_page

__all__ = ["Inputs", "contents", "contents_of_result", "page", "told_apart", "write_page"]
