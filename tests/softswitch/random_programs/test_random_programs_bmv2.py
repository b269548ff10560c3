"""Random programs on BMv2: packet for packet what the interpreter does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bmv2_peer import Bmv2Peer, compile_for_bmv2, missing
from comparison import Difference, packets_for
from generator import random_program
from generator_scope import Options

from catchment.softswitch.compiler.frontend import check_file
from catchment.softswitch.interpreter import InterpretedSwitch

pytestmark = [pytest.mark.slow, pytest.mark.skipif(missing() is not None, reason=str(missing()))]


@pytest.mark.parametrize("number", range(20))
def test_bmv2_equals_the_interpreter(seed: int, number: int, tmp_path: Path) -> None:
    rng = random.Random(f"{seed}:bmv2:{number}")
    source = tmp_path / f"random{number}.p4"
    text = random_program(rng, Options(size=3, loops=False))
    source.write_text(text)
    try:
        peer = Bmv2Peer(compile_for_bmv2(source))
    except RuntimeError as error:
        pytest.skip(f"p4c and BMv2 do not take it: {error}")
    switch = InterpretedSwitch(check_file(source).program)
    try:
        for place, (port, packet) in enumerate(packets_for(rng, 40)):
            wanted = sorted(switch.inject(port, packet))
            got = peer.inject(port, packet, len(wanted))
            assert wanted == got, f"seed {seed}\n{Difference(place, port, packet, wanted, got, 'bmv2')}\n{text}"
    finally:
        peer.close()
