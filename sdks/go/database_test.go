package millrace

import (
	"context"
	"errors"
	"testing"
	"time"
)

type person struct {
	Name string `json:"name"`
	Age  int    `json:"age"`
}

func openDatabase(t *testing.T) (*Database, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return must(NewDatabase(databaseOptions)), ctx
}

func TestDocuments(t *testing.T) {
	db, ctx := openDatabase(t)
	people := db.Collection("go_people")
	ada := must(people.InsertKey(ctx, "ada", person{"Ada", 36}))
	older := must(people.UpdateIfRev(ctx, ada.ID, ada.Rev, person{"Ada", 37}))
	if _, err := people.UpdateIfRev(ctx, ada.ID, ada.Rev, person{"Ada", 1}); !IsCode(err, "REV_MISMATCH") {
		t.Fatal(err)
	}
	var read person
	check(t, must(people.GetKey(ctx, "ada")).Decode(&read))
	if read != (person{"Ada", 37}) || older.Rev != ada.Rev+1 {
		t.Fatal(read, older)
	}
	must(people.Merge(ctx, "ada", map[string]int{"age": 38}))
	check(t, people.DeleteKey(ctx, "ada"))
	if gone := must(people.Get(ctx, ada.ID)); gone != nil {
		t.Fatal(gone)
	}
}

func TestFind(t *testing.T) {
	db, ctx := openDatabase(t)
	numbers := db.Collection("go_numbers")
	documents := make([]any, 900)
	for i := range documents {
		documents[i] = map[string]any{"n": i, "even": i%2 == 0}
	}
	for _, result := range must(numbers.InsertMany(ctx, documents, true)) {
		if result.Status != "OK" {
			t.Fatal(result)
		}
	}
	if all := must(numbers.Find(ctx, Query{})); len(all) != 900 {
		t.Fatal(len(all))
	}
	top := must(numbers.Find(ctx, Query{Filter: Where("even", "eq", true), OrderBy: []string{"-n"}, Limit: 3}))
	var first struct{ N int }
	check(t, top[0].Decode(&first))
	if len(top) != 3 || first.N != 898 {
		t.Fatal(len(top), first)
	}
	some := Or(Where("n", "lt", 10), And(Where("n", "gte", 100), Not(Where("n", "gte", 105))))
	if count := must(numbers.Count(ctx, some)); count != 15 {
		t.Fatal(count)
	}
}

func TestTransactions(t *testing.T) {
	db, ctx := openDatabase(t)
	check(t, db.Transact(ctx, func(tx *Tx) error {
		_, err := tx.Collection("go_accounts").Upsert(ctx, "a", map[string]int{"sum": 10})
		return err
	}))
	wrong := errors.New("wrong")
	err := db.Transact(ctx, func(tx *Tx) error {
		must(tx.Collection("go_accounts").Upsert(ctx, "b", map[string]int{"sum": 20}))
		return wrong
	})
	if err != wrong {
		t.Fatal(err)
	}
	if count := must(db.Collection("go_accounts").Count(ctx, nil)); count != 1 {
		t.Fatal(count)
	}
}

func TestWatch(t *testing.T) {
	db, ctx := openDatabase(t)
	events := db.Collection("go_events")
	must(events.Insert(ctx, map[string]int{"n": 0}))
	enough := errors.New("enough")
	var seen []int
	token := ""
	read := func(options WatchOptions, count int) {
		err := events.Watch(ctx, options, func(change Change) error {
			var event struct{ N int }
			if err := change.Record.Decode(&event); err != nil {
				return err
			}
			seen = append(seen, event.N)
			token = change.ResumeToken
			if len(seen) == count {
				return enough
			}
			return nil
		})
		if err != enough {
			t.Fatal(err)
		}
	}
	go func() {
		for n := 1; n < 3; n++ {
			must(events.Insert(ctx, map[string]int{"n": n}))
		}
	}()
	read(WatchOptions{IncludeInitial: true}, 3)
	must(events.Insert(ctx, map[string]int{"n": 3}))
	read(WatchOptions{ResumeToken: token}, 4)
	if len(seen) != 4 || seen[3] != 3 {
		t.Fatal(seen)
	}
}

func TestOperatorsAndSearch(t *testing.T) {
	db := must(NewDatabase(databaseOptions))
	ctx := context.Background()
	notes := db.Collection("go-notes")
	check(t, notes.CreateIndex(ctx, map[string]any{"search": []string{"title"}, "language": "en"}))
	check(t, notes.CreateIndex(ctx, map[string]any{"vector": "v", "dims": 2, "metric": "l2"}))
	first := must(notes.InsertKey(ctx, "q", map[string]any{"title": "Durable queues", "n": 1, "v": []int{0, 1}}))
	must(notes.Insert(ctx, map[string]any{"title": "A database", "n": 5, "v": []int{1, 0}}))
	must(notes.Apply(ctx, first.ID, Ops{"$inc": Ops{"n": 2}}))
	changed := must(notes.ApplyKey(ctx, "q", Ops{"$set": Ops{"tags": []string{"a"}}}))
	var note struct {
		N    int
		Tags []string
	}
	check(t, changed.Decode(&note))
	if note.N != 3 || len(note.Tags) != 1 {
		t.Fatal(note)
	}
	if count := must(notes.ApplyMany(ctx, Where("n", "gte", 1), Ops{"$mul": Ops{"n": 10}})); count != 2 {
		t.Fatal(count)
	}
	var values []int
	check(t, notes.Distinct(ctx, "n", nil, &values))
	if len(values) != 2 || values[0]+values[1] != 80 {
		t.Fatal(values)
	}
	found := must(notes.Find(ctx, Query{Search: "queue"}))
	if len(found) != 1 || found[0].ID != first.ID || found[0].Score <= 0 || found[0].Highlights["title"] == nil {
		t.Fatal(found)
	}
	near := must(notes.Find(ctx, Query{Near: &Near{Field: "v", Vector: []float32{0, 0.9}, K: 1}, Exclude: []string{"title"}}))
	if len(near) != 1 || near[0].ID != first.ID {
		t.Fatal(near)
	}
	if _, err := notes.Apply(ctx, first.ID, Ops{"$inc": Ops{"title": 1}}); !IsCode(err, "TYPE_MISMATCH") {
		t.Fatal(err)
	}
}
