"""Pages as tests read them."""

import json
import re


def data_of(page):
    """What a page's scripts read."""
    return json.loads(
        re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)[1]
    )


def without_plotly(page):
    """A page without the one script that is not ours."""
    return re.sub(r'<script id="plotly">.*?</script>', "", page, flags=re.DOTALL)
