"""The database over REST: documents, queries, bulk writes, transactions and changes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import ApiError, ConnectionLost
from .http import Api, Stream, Token, segment
from .ulid import new_ulid

Document = Mapping[str, Any]
Filter = Mapping[str, Any]
"""`{"age": {"gt": 40}, "name": "Ada"}`, or the form of the API: `{"field", "op", "value"}`."""

_OPERATORS = set(
    "eq ne gt gte lt lte in nin exists contains prefix regex between"
    " elemMatch all size type eqi startsWithi".split()
)
_PAGE = 500


@dataclass(frozen=True)
class Record:
    """A document with what the database knows of it."""

    id: str
    key: str
    rev: int
    seq: int
    data: dict[str, Any]
    created_at: str | None = None
    updated_at: str | None = None
    expires_at: str | None = None
    score: float | None = None
    """Of a search."""
    highlights: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True)
class Change:
    """One change of a record. `op` is insert, update, delete or expire."""

    op: str
    collection: str
    record: Record
    before: Record | None
    seq: int
    resume_token: str = field(repr=False)


class Database:
    """A database server. It may be used by several threads at once."""

    def __init__(
        self, url: str | Sequence[str] = "http://127.0.0.1:8082", token: Token = None, **options: Any
    ) -> None:
        self.api = Api(url, token, **options)

    def collection(self, name: str) -> Collection:
        return Collection(self.api, name)

    def __getitem__(self, name: str) -> Collection:
        return self.collection(name)

    def transaction(self, *, read_only: bool = False, timeout: float | None = None) -> Transaction:
        """`with db.transaction() as tx: tx["a"].insert(...)`: commits unless an error leaves it."""
        return Transaction(self.api, read_only, timeout)

    def watch(self, **options: Any) -> Watch:
        """Changes of all collections; needs admin rights. See Collection.watch."""
        return Watch(self.api, "/v1/records:watch", options)

    def status(self) -> dict[str, Any]:
        query = {"include_collections": True}
        answer: dict[str, Any] = self.api.call("GET", "/v1/admin/replication", query=query)
        return answer

    def close(self) -> None:
        self.api.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Collection:
    """The records of one collection, by id or by a key of your own."""

    def __init__(self, api: Api, name: str, tx_id: str | None = None) -> None:
        self.name = name
        self._api = api
        self._path = f"/v1/{segment(name)}"
        self._tx_id = tx_id

    def insert(self, data: Document, *, key: str | None = None, ttl: float | None = None) -> Record:
        """Inserts a record; a key that exists already is refused."""
        body = self._body({"data": dict(data), "ttl": _duration(ttl)})
        if key is None:
            return self._write("POST", "/records", body)
        return self._write("POST", "/keys", {**body, "key": key})

    def get(self, id: str, *, fields: Sequence[str] | None = None) -> Record | None:
        """The record with this id, or None."""
        return self._read(f"/records/{segment(id)}", fields)

    def get_by_key(self, key: str, *, fields: Sequence[str] | None = None) -> Record | None:
        """The record with this key, or None."""
        return self._read(f"/keys/{segment(key)}", fields)

    def upsert(self, key: str, data: Document, *, merge: bool = False) -> Record:
        """Inserts the record of a key, or replaces it (or merges into it)."""
        body = self._body({"data": dict(data), "mode": _mode(merge)})
        return self._write("POST", f"/keys/{segment(key)}:upsert", body)

    def update(
        self,
        id: str,
        data: Document,
        *,
        merge: bool = False,
        if_rev: int | None = None,
    ) -> Record:
        """Replaces a record, or applies operators to it: `{"$inc": {"n": 1}}`.

        With `if_rev`, only if it still has that revision.
        """
        return self._update(f"/records/{segment(id)}", data, merge, if_rev)

    def update_by_key(
        self,
        key: str,
        data: Document,
        *,
        merge: bool = False,
        if_rev: int | None = None,
    ) -> Record:
        return self._update(f"/keys/{segment(key)}", data, merge, if_rev)

    def delete(self, id: str) -> None:
        self._delete(f"/records/{segment(id)}")

    def delete_by_key(self, key: str) -> None:
        self._delete(f"/keys/{segment(key)}")

    def find(
        self,
        filter: Filter | None = None,
        *,
        order_by: str | Sequence[str] | None = None,
        limit: int | None = None,
        fields: Sequence[str] | None = None,
        exclude: Sequence[str] | None = None,
        search: str | Mapping[str, Any] | None = None,
        near: Mapping[str, Any] | None = None,
        lookup: Sequence[Mapping[str, Any]] | None = None,
        allow_full_scan: bool | None = None,
    ) -> Iterator[Record]:
        """Records that match, page by page. `order_by="-age"` is descending.

        `search` is text or `{"text", "mode", "fuzzy", ...}`, `near` is `{"field", "vector", "k"}`;
        both need an index and give records with a `score`. `lookup` joins records of another
        collection: `[{"from", "local", "foreign", "as"}]`.
        """
        body: dict[str, Any] = {"filter": wire_filter(filter), "order_by": _order(order_by)}
        body |= {"fields": fields and [*fields], "allow_full_scan": allow_full_scan}
        body |= {"search": {"text": search} if isinstance(search, str) else search, "near": near}
        body |= {"lookup": lookup and [*lookup]}
        body |= {"projection": {"exclude": [*exclude]} if exclude else None}
        if search is not None or near is not None:
            # Ranked records come in one answer.
            sent = self._body({**body, "limit": limit}, is_write=False)
            page = self._api.call("POST", f"{self._path}/records:find", sent, is_safe=True)
            yield from map(record_of, page["records"])
            return
        cursor: str | None = None
        left = limit
        while left is None or left > 0:
            page_size = _PAGE if left is None else min(left, _PAGE)
            sent = self._body({**body, "limit": page_size, "cursor": cursor}, is_write=False)
            page = self._api.call("POST", f"{self._path}/records:find", sent, is_safe=True)
            records = page["records"]
            yield from map(record_of, records)
            if left is not None:
                left -= len(records)
            cursor = page.get("next_cursor") or None
            if cursor is None:
                return

    def find_one(
        self, filter: Filter | None = None, *, order_by: str | Sequence[str] | None = None
    ) -> Record | None:
        """The first record that matches, or None."""
        return next(self.find(filter, order_by=order_by, limit=1), None)

    def count(self, filter: Filter | None = None) -> int:
        body = self._body({"filter": wire_filter(filter), "count_only": True}, is_write=False)
        answer = self._api.call("POST", f"{self._path}/records:find", body, is_safe=True)
        return int(answer["count"])

    def distinct(self, field: str, filter: Filter | None = None) -> list[Any]:
        """The different values of a field; of an array, its elements."""
        body = self._body({"field": field, "filter": wire_filter(filter)}, is_write=False)
        answer = self._api.call("POST", f"{self._path}/records:distinct", body, is_safe=True)
        values: list[Any] = answer["values"]
        return values

    def aggregate(self, **request: Any) -> list[dict[str, Any]]:
        """Sums over groups: `aggregate(group_by=["city"], aggregates=[...])`, as in the API."""
        if request.get("filter") is not None:
            request["filter"] = wire_filter(request["filter"])
        body = self._body(request, is_write=False)
        answer = self._api.call("POST", f"{self._path}/records:aggregate", body, is_safe=True)
        groups: list[dict[str, Any]] = answer["groups"]
        return groups

    def bulk(
        self, operations: Sequence[Mapping[str, Any]], *, atomic: bool = False, ordered: bool = False
    ) -> list[dict[str, Any]]:
        """Many writes in one call, such as `{"insert": {"data": {...}}}`; one result each."""
        body = self._body({"operations": [*operations], "atomic": atomic, "ordered": ordered})
        answer = self._api.call("POST", f"{self._path}/records:bulk", body, is_safe=True)
        results: list[dict[str, Any]] = answer["results"]
        return results

    def update_many(self, filter: Filter, patch: Document, *, limit: int | None = None) -> int:
        """Merges a patch into all records that match, or applies operators; returns how many."""
        name = "update" if _is_operators(patch) else "patch"
        body = self._body({"filter": wire_filter(filter), name: dict(patch), "limit": limit})
        answer = self._api.call("POST", f"{self._path}/records:updateMany", body, is_safe=True)
        return int(answer["changed"])

    def delete_many(self, filter: Filter, *, limit: int | None = None) -> int:
        body = self._body({"filter": wire_filter(filter), "limit": limit})
        answer = self._api.call("POST", f"{self._path}/records:deleteMany", body, is_safe=True)
        return int(answer["changed"])

    def create_index(
        self, fields: Sequence[str] = (), *, unique: bool = False, **options: Any
    ) -> None:
        """`create_index(["city"])`, `create_index(search=["title"], language="en")`,
        `create_index(vector="embedding", dims=384, metric="cosine")`; `where=` makes it partial."""
        if options.get("where") is not None:
            options["where"] = wire_filter(options["where"])
        body = {"fields": [*fields], "unique": unique, **options}
        self._api.call(
            "POST", f"/v1/admin/collections/{segment(self.name)}/indexes", body, is_safe=True
        )

    def watch(
        self,
        filter: Filter | None = None,
        *,
        resume_token: str | None = None,
        include_initial: bool = False,
        include_before: bool = False,
    ) -> Watch:
        """Changes as they are committed; goes on by itself after a lost connection."""
        body = {
            "filter": wire_filter(filter),
            "resume_token": resume_token,
            "include_initial": include_initial or None,
            "include_before": include_before or None,
        }
        return Watch(self._api, f"{self._path}/records:watch", body)

    def _update(self, path: str, data: Document, merge: bool, if_rev: int | None) -> Record:
        is_operators = _is_operators(data)
        content: dict[str, Any] = {"update" if is_operators else "data": dict(data)}
        if if_rev is not None:
            mode = None if is_operators else _mode(merge)
            fields = {**content, "mode": mode, "expected_rev": if_rev}
            return self._write("POST", f"{path}:updateIfRev", self._body(fields))
        if is_operators:
            return self._write("PATCH", path, self._body(content))
        return self._write("PATCH" if merge else "PUT", path, self._body({"data": dict(data)}))

    def _write(self, method: str, path: str, body: dict[str, Any]) -> Record:
        answer = self._api.call(method, self._path + path, body, is_safe=True)
        return record_of({"data": body.get("data"), "key": "", **answer.get("record", answer)})

    def _read(self, path: str, fields: Sequence[str] | None) -> Record | None:
        query = {"fields": fields and ",".join(fields), "tx_id": self._tx_id}
        try:
            answer = self._api.call("GET", self._path + path, query=query)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return record_of(answer["record"])

    def _delete(self, path: str) -> None:
        query = {"tx_id": self._tx_id, "request_id": new_ulid()}
        self._api.call("DELETE", self._path + path, query=query)

    def _body(self, fields: Mapping[str, Any], is_write: bool = True) -> dict[str, Any]:
        body = {name: value for name, value in fields.items() if value is not None}
        if self._tx_id is not None:
            body["tx_id"] = self._tx_id
        elif is_write:
            # A write that is sent twice is done once.
            body["request_id"] = new_ulid()
        return body


class Transaction:
    """Reads and writes of one snapshot, committed together. Use it in a `with` statement."""

    def __init__(self, api: Api, read_only: bool, timeout: float | None) -> None:
        self._api = api
        self._options = {"read_only": read_only, "timeout": _duration(timeout)}
        self._id: str | None = None

    def __enter__(self) -> Transaction:
        body = {name: value for name, value in self._options.items() if value is not None}
        body["request_id"] = new_ulid()
        answer = self._api.call("POST", "/v1/tx:begin", body, is_safe=True)
        self._id = str(answer["tx_id"])
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        tx_id, self._id = self._id, None
        action = "commit" if kind is None else "rollback"
        self._api.call("POST", f"/v1/tx/{segment(str(tx_id))}:{action}", is_safe=kind is not None)

    def collection(self, name: str) -> Collection:
        if self._id is None:
            raise RuntimeError("The transaction is not open: use it in a with statement")
        return Collection(self._api, name, self._id)

    def __getitem__(self, name: str) -> Collection:
        return self.collection(name)


class Watch:
    """Changes; iterate over it. `resume_token` is where it stands; `close` ends it in any thread."""

    def __init__(self, api: Api, path: str, body: Mapping[str, Any]) -> None:
        self._api = api
        self._path = path
        self._body = {name: value for name, value in body.items() if value is not None}
        self._closed = threading.Event()
        self._stream: Stream | None = None

    @property
    def resume_token(self) -> str | None:
        return self._body.get("resume_token")

    def __iter__(self) -> Iterator[Change]:
        delay = 0.1
        while not self._closed.is_set():
            try:
                self._stream = self._api.stream("POST", self._path, self._body)
                with self._stream:
                    for line in self._stream:
                        if line:
                            delay = 0.1
                            yield from self._changes(json.loads(line))
            except ConnectionLost:
                self._closed.wait(delay)
                delay = min(delay * 2, 5.0)

    def _changes(self, message: Mapping[str, Any]) -> Iterator[Change]:
        if "error" in message:
            raise ApiError(500, message["error"])
        for change in message.get("changes", []):
            before = change.get("before")
            yield Change(
                op=str(change["op"]).removeprefix("CHANGE_OP_").lower(),
                collection=change.get("collection", ""),
                record=record_of(change["record"]),
                before=record_of(before) if before else None,
                seq=message["seq"],
                resume_token=message["resume_token"],
            )
        # Only a message whose changes were all taken is behind us.
        self._body["resume_token"] = message["resume_token"]
        self._body.pop("include_initial", None)

    def close(self) -> None:
        self._closed.set()
        if self._stream is not None:
            self._stream.close()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def record_of(raw: Mapping[str, Any]) -> Record:
    return Record(
        id=raw["id"],
        key=raw.get("key", ""),
        rev=raw["rev"],
        seq=raw.get("seq", 0),
        data=raw.get("data") or {},
        created_at=raw.get("created_at"),
        updated_at=raw.get("updated_at"),
        expires_at=raw.get("expires_at"),
        score=raw.get("score"),
        highlights=raw.get("highlights"),
    )


def _is_operators(data: Document) -> bool:
    """`{"$set": {...}}`: what begins with a dollar sign is an operator, never a field."""
    return any(name.startswith("$") for name in data)


def wire_filter(filter: Filter | None) -> dict[str, Any] | None:
    """The form of the API of a filter in short form."""
    if filter is None:
        return None
    if "op" in filter and "field" in filter:
        return dict(filter)
    conditions: list[dict[str, Any]] = []
    for name, value in filter.items():
        if name in ("and", "or") and isinstance(value, Sequence):
            conditions.append({name: [wire_filter(each) for each in value]})
        elif name == "not" and isinstance(value, Mapping):
            conditions.append({"not": wire_filter(value)})
        elif isinstance(value, Mapping) and value and set(value) <= _OPERATORS:
            conditions += [{"field": name, "op": op, "value": each} for op, each in value.items()]
        else:
            conditions.append({"field": name, "op": "eq", "value": value})
    return conditions[0] if len(conditions) == 1 else {"and": conditions}


def _order(order: str | Sequence[str] | None) -> list[dict[str, Any]] | None:
    if order is None:
        return None
    fields = [order] if isinstance(order, str) else order
    return [
        {"field": each[1:], "desc": True} if each.startswith("-") else {"field": each}
        for each in fields
    ]


def _mode(merge: bool) -> str | None:
    return "MERGE" if merge else None


def _duration(seconds: float | None) -> str | None:
    return None if seconds is None else f"{seconds}s"
