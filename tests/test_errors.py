import math

import pytest

from ssdfl.errors import InputError, check_range, import_object, require


def test_missing_extra_names_the_remedy_for_a_package_and_for_a_clone():
    remedy = r"pip install 'ssdfl\[mesh\]', or in a clone: pip install -e '\.\[mesh\]'"
    with pytest.raises(InputError, match=remedy):
        require("no_such_module_anywhere", "mesh")


@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan])
def test_check_range_refuses(value):
    with pytest.raises(InputError, match=r"p = .*expected a number in \[0, 1\]"):
        check_range("p", value, 0, 1)


@pytest.mark.parametrize("path", ["no.such.module:x", "math:nothing", "math"])
def test_import_object_refuses(path):
    with pytest.raises(InputError, match=f"method = {path}"):
        import_object(path, "method")
