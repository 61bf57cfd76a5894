"""Programs that write into views give what they give in PyTorch, with their writes and without them."""

import pytest

from tests.differential.helpers import run_both
from tests.functional_programs import LAYOUTS, PROGRAMS


@pytest.mark.parametrize("passes", ["", "remove-mutation,canonicalize,cse,dce", "default"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_compute_what_they_do_in_pytorch(name: str, passes: str) -> None:
    for x in LAYOUTS.values():
        for others in ((False, 0), (True, 3)):
            run_both(PROGRAMS[name].text, [x, *others], strides=not passes, passes=passes)
