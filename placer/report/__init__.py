"""The report: one HTML page that shows a cluster, what a placement makes of it, and what is proved of that.

Belongs here: telling the files of a call apart, the data of the page as plain values, the page itself. Does not:
deciding, judging, measuring (those rooms are asked), the command line.

The way of a report, one file for each step::

    inputs      told_apart    files -> texts of the instance, the placement, a comparison
    answers     answer_of     instance and placement -> what comes of it, what is proved, why groups wait
    inventory   inventory     nodes, domains, groups, pods, queues as columns
    disturbed   disturbed     what is evicted and moved, and what lost nodes ran
    stranded    stranded      what is free and cannot be used, and why
    headline    headline      the answer in a few sentences, before any table
    comparison  beside        rows of ``placer compare`` and the groups that fare differently
    contents    contents      all of it as one value, ready for JSON
    palette     declarations  the colours, which the pictures of the documentation have, too
    page        page          that value in the page: ``static/``, which is written by hand and served as it is

The page holds its data as JSON in an element that no browser runs, and builds everything from it by text nodes; what
it may do otherwise is forbidden to it by its own Content-Security-Policy.
"""

from placer.report.contents import contents, contents_of_result
from placer.report.inputs import Inputs, told_apart
from placer.report.page import page, write_page

__all__ = ["Inputs", "contents", "contents_of_result", "page", "told_apart", "write_page"]
