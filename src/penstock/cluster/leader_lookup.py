"""Finds the job manager that leads among several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.common import config_keys as keys
from penstock.common.configuration import Configuration
from penstock.common.exceptions import EnvironmentSetupError
from penstock.rest.client import LEADERSHIP, Address, RestClient, RestClientError
from penstock.rest.security.access import OWN_SERVERS, ClientAccess

if TYPE_CHECKING:
    from penstock.cluster.high_availability.services import HighAvailability

_ANSWER_S = 5.0


@dataclass(frozen=True)
class JobManagers:
    """Those that a user named, or that share the configured high-availability.storageDir."""

    addresses: tuple[Address, ...] = ()
    high_availability: HighAvailability | None = None
    access: ClientAccess = OWN_SERVERS

    @staticmethod
    def of(config: Configuration, named: str | None = None) -> JobManagers | None:
        """What -m (`named`) or the settings say; None if they say nothing."""
        access = ClientAccess.of(config)
        if named is not None:
            return JobManagers(_parsed(named, access), None, access)
        if config.get(keys.HIGH_AVAILABILITY).upper() != "NONE":
            from penstock.cluster.high_availability.services import HighAvailability

            return JobManagers((), HighAvailability.of(config), access)
        host, port = config.get_optional(keys.REST_ADDRESS), config.get_optional(keys.REST_PORT)
        if host is None and port is None:
            return None
        if host is not None and "," in host:  # `run -m` keeps several addresses in this form.
            return JobManagers(_parsed(host, access), None, access)
        address = Address(host=host or "localhost", port=config.get(keys.REST_PORT), access=access)
        return JobManagers((address,), None, access)

    @property
    def may_change(self) -> bool:
        """True if another one may lead later."""
        return len(self.addresses) != 1

    def leader(self) -> Address:
        """Where the leader is. A single job manager is taken as it is; it refers to the leader if there is another."""
        if self.high_availability is not None:
            return self._published(self.high_availability)
        if len(self.addresses) == 1:
            return self.addresses[0]
        return _asked(self.addresses)

    def _published(self, high_availability: HighAvailability) -> Address:
        try:
            address = high_availability.leader_address()
        except EnvironmentSetupError as error:  # As if none led: it may be known again in a moment.
            raise RestClientError(str(error), 503) from error
        if address is None:
            raise RestClientError(
                f"no job manager leads now, according to {high_availability.options.directory}; `penstock jobmanager "
                f"start` starts one, and -m host:port asks one that you know",
                503,
            )
        return Address.parse(address, self.access)

    def __str__(self) -> str:
        return ",".join(map(str, self.addresses)) or "the configured job managers"


def _parsed(text: str, access: ClientAccess) -> tuple[Address, ...]:
    """`host:port`, or several of them with commas in between."""
    return tuple(Address.parse(each.strip(), access) for each in text.split(","))


def _asked(addresses: Sequence[Address]) -> Address:
    """The first that says that it leads, or the first that another one has named and that says so itself."""
    refusals: list[str] = []
    named: list[Address] = []
    for address in addresses:
        try:
            leadership = RestClient(address, _ANSWER_S).get(LEADERSHIP)
        except RestClientError as error:
            if error.status == 404:  # It stands alone.
                return address
            refusals.append(str(error))
            continue
        if leadership["role"] == "leader":
            return address
        refusals.append(f"{address} stands by")
        named += [] if leadership["leader"] is None else [Address.parse(leadership["leader"], address.access)]
    for address in named:
        if _leads(address):
            return address
    raise RestClientError("no job manager leads now: " + "; ".join(refusals), 503)


def _leads(address: Address) -> bool:
    try:
        return bool(RestClient(address, _ANSWER_S).get(LEADERSHIP)["role"] == "leader")
    except RestClientError:
        return False
