# SPDX-License-Identifier: Apache-2.0
"""list."""

COLUMNS = "NAME SIZE RESIDENT PHASE ATTACHED LOCK-OWNER SINCE OWNER MODE LIFETIME AGE".split()


def test_empty(ctl):
    assert ctl("list").out == ""
    assert ctl("list", "--json").json == {"segments": []}


def test_columns_are_refused_by_name(ctl):
    ctl("list", "-o", "NAME,WEIGHT", status=2, err="there is no column 'WEIGHT'")
    ctl("list", "-o", "NAME,", status=2, err="there is no column ''")
    ctl("list", "-o", "NAME,name", status=2, err="column NAME is named twice")
    ctl("list", "-o", "+NAME", status=2, err="column NAME is named twice")


def test_a_name_that_is_not_there(ctl):
    ctl("list", "ghost", status=4, err="no segment 'ghost'")
