"""The KI of the campaign: the real ledger on a machine's card and the real reports, without a socket."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from heek.journal.held import TAKEN
from heek.ki import cbor
from heek.ki.link import Request
from heek.ranking.claims import Claims
from heek.ranking.desk import Desk
from heek.ranking.gate import ASKS, Asks
from heek.ranking.ledger import Ledger
from heek.ranking.live import Live
from heek.ranking.operating import Operating
from heek.ranking.operator_requests import PATH, OperatorRequest, Wish, encode_request
from heek.ranking.reports import Reports
from heek.ranking.service_keys import operator_key, service_key
from heek.ranking.store import Store, open_store
from tests.campaign.links import Cable, gateway_at
from tests.campaign.machines import Machine, Worldly

if TYPE_CHECKING:
    from heek.ki.gateway import Gateway

LEDGER: Final = "ki.sqlite3"


class Service(Machine):
    """One KI; `start` is its process's."""

    def __init__(self, world: Worldly, cables: Sequence[tuple[Cable, Machine]]) -> None:
        super().__init__(world, "ki", {})
        self.cables = cables
        self._store: Store | None = None
        self.gateways: list[Gateway] = []
        self.said: set[str] = set()
        """Matches that it has ever said it holds."""

    def start(self) -> None:
        self._store = open_store(self.folder / LEDGER)
        self.ledger = Ledger(self._store, self.clock.wall_s, self.world.dice.randrange)
        self.ledger.mend()
        key = service_key(self.folder)
        self._operator = operator_key(self.folder)
        self._desk = Desk(self._store, self.ledger, Live("campaign"))
        operating = Operating(self._desk, self.clock.now, Claims(key.public, "KI"), self._operator)
        self._reports = Reports(self._desk, operating, self.clock.now, key, "KI", demo=True)
        self.world.loop.create_task(self._open_ports())

    async def _open_ports(self) -> None:
        self.gateways = [gateway_at(cable, self, table) for cable, table in self.cables]

    def plug(self, cable: Cable, table: Machine) -> None:
        """One more table's line comes to its gateways."""

        async def open_port() -> None:
            self.gateways.append(gateway_at(cable, self, table))

        self.spawn(open_port())

    def let_go(self) -> None:
        self.gateways = []
        if self._store is not None:
            self._store.close()
        self._store = None

    async def close(self) -> None:
        """End as a process that was told to."""
        for each in self.gateways:
            await each.close()
        self._desk.close()
        if self._store is not None:
            self._store.close()

    def take(self, request: Request, body: bytes, source: str | None, reply: Callable[[bytes], None]) -> bool:
        """Answer a question that has arrived, if it is on."""
        self.spawn(self._answer(request.path, body, source, reply))
        return self.on

    def operate(self, wish: Wish, reply: Callable[[bytes], None]) -> None:
        """Have an operator ask for something, with the word that lies beside the ledger."""
        if self.on:
            body = encode_request(OperatorRequest(self._operator, "campaign", wish))
            self.spawn(self._answer(PATH, body, None, reply))

    async def _answer(
        self, path: str, body: bytes, source: str | None, reply: Callable[[bytes], None]
    ) -> None:
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "headers": [(b"content-length", str(len(body)).encode())],
            ASKS: Asks(source is None, source or "127.0.0.1", None),
        }
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            return waiting.pop()

        response = await self._reports.answer(scope, receive)
        said = bytes(response.body)
        if path == Request.RECORDS.path:
            for verdict, _, match in cbor.decode(said).get("answers", ()):
                if verdict in TAKEN:
                    self.said.add(str(uuid.UUID(bytes=match)))
        reply(said)
