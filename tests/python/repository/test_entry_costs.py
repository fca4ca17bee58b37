"""tools/entry_costs.py: the table of what it measured. Nothing is measured here."""

import json

import entry_costs as tool
import matrix


def test_the_first_python_is_what_others_are_compared_with():
    costs = {
        "3.11": {"entry_us": 30.0, "leaving_us": 50.0, "entry_and_leaving_fastest_us": 70.0},
        "3.14": {"entry_us": 36.0, "leaving_us": 60.0, "entry_and_leaving_fastest_us": 80.0},
    }
    assert tool.table(costs).splitlines()[2:] == [
        "| 3.11 | 30.0 | 50.0 | 70.0 | 1.00 × |",
        "| 3.14 | 36.0 | 60.0 | 80.0 | 1.20 × |",
    ]


def test_the_checkouts_table_is_made_of_its_results():
    assert tool.table(json.loads(tool.RESULTS.read_text())["costs"]) in matrix.PAGE.read_text()
