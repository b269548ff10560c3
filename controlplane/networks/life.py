"""The life of the emulated network that a process serves: it is over when its owner ends, whoever has its name next."""

from __future__ import annotations

import json
import shutil

from catchment.controlplane.networks.state import NetworkError, NetworkState, is_held, jobs_folder
from catchment.lock_file import take
from catchment.wire.run_folder import run_folder


class NetworkLife:
    """One network, told from another of the same name that follows it; not for several threads at once.

    Args:
        network: as it was found.

    Attributes:
        name: of the network.

    Raises:
        NetworkError: it has ended since it was found.
    """

    def __init__(self, network: NetworkState) -> None:
        self.name = network.name
        self._over = False
        try:
            self._file = (run_folder() / f"{self.name}.json").open("r", encoding="utf-8")
            if json.load(self._file)["owner"] == network.owner and not self.is_over():
                return
            self._file.close()
        except (OSError, ValueError, KeyError, TypeError):
            pass
        raise NetworkError(f"network {self.name} has ended meanwhile; start it with `catchment net up`")

    def is_over(self) -> bool:
        """Whether its owner has let the lock of its state file go; once that is so it stays so."""
        if not self._over:
            if not take(self._file.fileno()):
                return False
            self._file.close()  # with the lock: the next owner may want this very file
            self._over = True
        return True

    def drop_jobs(self) -> None:
        """Remove what was noted of its jobs after its owner had done so, unless another network has the name."""
        if not is_held(self.name):
            shutil.rmtree(jobs_folder(self.name), ignore_errors=True)
