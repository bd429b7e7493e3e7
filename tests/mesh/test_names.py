"""Names that can be folders and certificates, and those that cannot."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdfl.errors import InputError
from ssdfl.graph import load_network
from ssdfl.mesh.names import LONGEST, certificate_name, check_names


def test_the_built_in_networks_names_can_be_used():
    check_names(load_network("gaia").names)
    check_names(load_network("ring:n=12").names)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "none: expected a name"),
        ("a/b", "expected one without /"),
        ("..", "begins nor ends"),
        (".hidden", "begins nor ends"),
        ("end ", "begins nor ends"),
        ("-rf", "begin with -"),
        ("a\tb", "printable"),
        ("a\0b", "printable"),
        ("x" * (LONGEST + 1), "at most 64"),
        ("ca", "none of ca, changes, run"),
        ("Changes", "none of ca, changes, run"),
        ("C:", "expected one without"),
    ],
)
def test_a_name_that_cannot_be_a_folder_is_refused(name, reason):
    with pytest.raises(InputError, match=reason):
        check_names(["good", name])


@pytest.mark.parametrize(
    "pair",
    [("Ann", "ann"), ("\u00e9", "e\u0301"), ("a b", "a-x20b")],
    ids=["case", "accent", "code"],
)
def test_two_names_of_one_folder_or_certificate_are_refused(pair):
    with pytest.raises(InputError, match="names of two devices = .* and .*: expected different"):
        check_names(pair)


@given(st.text(min_size=1, max_size=20))
def test_certificates_have_only_what_dns_names_may_have(name):
    try:
        check_names([name])
    except InputError:
        return
    found = certificate_name(name)
    assert found.isascii()
    assert set(found.lower()) <= set("abcdefghijklmnopqrstuvwxyz0123456789-._")
