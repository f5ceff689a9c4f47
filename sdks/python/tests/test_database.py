from __future__ import annotations

import threading
import unittest

from millrace import ApiError, Change, Database
from millrace.database import wire_filter
from servers import servers


def setUpModule() -> None:
    global db
    key = (servers().data / "db" / "db.key").read_text().strip()
    db = Database(servers().urls["db"], key)


def tearDownModule() -> None:
    db.close()


class Documents(unittest.TestCase):
    def test_write_and_read(self) -> None:
        people = db["people"]
        ada = people.insert({"name": "Ada", "age": 36}, key="ada")
        self.assertEqual(people.get(ada.id), people.get_by_key("ada"))
        older = people.update_by_key("ada", {"age": 37}, merge=True, if_rev=ada.rev)
        self.assertEqual(older.data, {"name": "Ada", "age": 37})
        with self.assertRaises(ApiError) as caught:
            people.update(ada.id, {"age": 1}, if_rev=ada.rev)
        self.assertEqual(caught.exception.code, "REV_MISMATCH")
        people.delete_by_key("ada")
        self.assertIsNone(people.get(ada.id))

    def test_find_pages_and_filters(self) -> None:
        numbers = db["numbers"]
        numbers.create_index(["n"])
        writes = [{"insert": {"data": {"n": n, "even": n % 2 == 0}}} for n in range(1200)]
        for start in range(0, 1200, 400):
            results = numbers.bulk(writes[start : start + 400])
            self.assertEqual({each["status"] for each in results}, {"OK"})
        self.assertEqual(len([*numbers.find()]), 1200)
        top = [record.data["n"] for record in numbers.find({"even": True}, order_by="-n", limit=3)]
        self.assertEqual(top, [1198, 1196, 1194])
        self.assertEqual(numbers.count({"n": {"gte": 1000, "lt": 1010}}), 10)
        self.assertEqual(numbers.update_many({"n": {"lt": 10}}, {"small": True}), 10)
        self.assertEqual(numbers.delete_many({"or": [{"n": 0}, {"n": 1}]}), 2)
        self.assertIsNone(numbers.find_one({"n": 0}))

    def test_operators_and_search(self) -> None:
        notes = db["notes"]
        notes.create_index(search=["title"], language="en")
        notes.create_index(vector="v", dims=2, metric="l2")
        first = notes.insert({"title": "Durable queues", "n": 1, "tags": ["a"], "v": [0, 1]}, key="q")
        notes.insert({"title": "A database", "n": 5, "tags": ["a", "b"], "v": [1, 0]})
        changed = notes.update(first.id, {"$inc": {"n": 2}, "$push": {"tags": "c"}}, if_rev=first.rev)
        self.assertEqual((changed.data["n"], changed.data["tags"]), (3, ["a", "c"]))
        self.assertEqual(notes.update_by_key("q", {"$unset": ["tags"]}).data.get("tags"), None)
        self.assertEqual(notes.update_many({"n": {"gte": 1}}, {"$mul": {"n": 10}}), 2)
        self.assertEqual(sorted(notes.distinct("n")), [30, 50])
        [found] = notes.find(search="queue")
        self.assertEqual((found.id, (found.score or 0) > 0), (first.id, True))
        self.assertIn("<mark>", str(found.highlights))
        [near] = notes.find(near={"field": "v", "vector": [0, 0.9], "k": 1}, exclude=["title"])
        self.assertEqual((near.id, "title" in near.data), (first.id, False))
        with self.assertRaises(ApiError) as caught:
            notes.update(first.id, {"$inc": {"title": 1}})
        self.assertEqual(caught.exception.code, "TYPE_MISMATCH")

    def test_short_filters(self) -> None:
        self.assertEqual(wire_filter({"a": 1}), {"field": "a", "op": "eq", "value": 1})
        self.assertEqual(
            wire_filter({"not": {"a": {"in": [1, 2]}}}),
            {"not": {"field": "a", "op": "in", "value": [1, 2]}},
        )

    def test_transactions(self) -> None:
        with db.transaction() as tx:
            tx["accounts"].upsert("a", {"sum": 10})
            tx["accounts"].upsert("b", {"sum": 20})
            self.assertIsNone(db["accounts"].get_by_key("a"))
        self.assertEqual(db["accounts"].count(), 2)
        with self.assertRaises(KeyError), db.transaction() as tx:
            tx["accounts"].upsert("c", {"sum": 30})
            raise KeyError
        self.assertIsNone(db["accounts"].get_by_key("c"))

    def test_watch_and_resume(self) -> None:
        events = db["events"]
        events.insert({"n": 0})
        seen: list[Change] = []
        enough = threading.Event()
        with events.watch(include_initial=True) as watch:

            def read() -> None:
                for change in watch:
                    seen.append(change)
                    if len(seen) == 3:
                        enough.set()

            thread = threading.Thread(target=read)
            thread.start()
            for n in (1, 2):
                events.insert({"n": n})
            self.assertTrue(enough.wait(30))
        thread.join(30)
        self.assertEqual([change.record.data["n"] for change in seen], [0, 1, 2])
        events.insert({"n": 3})
        with events.watch(resume_token=watch.resume_token) as again:
            self.assertEqual(next(iter(again)).record.data["n"], 3)


if __name__ == "__main__":
    unittest.main()
