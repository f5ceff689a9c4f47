package millrace

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Record is a document with what the database knows of it.
type Record struct {
	ID        string          `json:"id"`
	Key       string          `json:"key"`
	Rev       int64           `json:"rev"`
	Seq       int64           `json:"seq"`
	Data      json.RawMessage `json:"data"`
	CreatedAt time.Time       `json:"created_at"`
	UpdatedAt time.Time       `json:"updated_at"`
	ExpiresAt *time.Time      `json:"expires_at"`
	// Score and Highlights are those of a search.
	Score      float64             `json:"score"`
	Highlights map[string][]string `json:"highlights"`
}

// Decode reads the document.
func (r *Record) Decode(document any) error { return json.Unmarshal(r.Data, document) }

// Database is a client of a database server. It may be used by several goroutines at once.
type Database struct{ api *api }

// NewDatabase makes a client; it connects with its first call.
func NewDatabase(options Options) (*Database, error) {
	api, err := newAPI(options)
	if err != nil {
		return nil, err
	}
	return &Database{api: api}, nil
}

// Collection gives the records of one collection.
func (d *Database) Collection(name string) *Collection { return &Collection{api: d.api, name: name} }

// Tx is a transaction: reads and writes of one snapshot.
type Tx struct {
	api *api
	id  string
}

// Collection gives the records of one collection inside the transaction.
func (t *Tx) Collection(name string) *Collection {
	return &Collection{api: t.api, name: name, tx: t.id}
}

// Transact runs do in a transaction and commits it, unless do returns an error or panics.
func (d *Database) Transact(ctx context.Context, do func(tx *Tx) error) error {
	var begun struct {
		ID string `json:"tx_id"`
	}
	body := fields{"request_id": NewULID()}
	if err := d.api.call(ctx, request{method: "POST", path: "/v1/tx:begin", body: body}, &begun); err != nil {
		return err
	}
	end := func(action string, once bool) error {
		path := join("/v1/tx/", begun.ID, ":"+action)
		return d.api.call(ctx, request{method: "POST", path: path, once: once}, nil)
	}
	done := false
	defer func() {
		if !done {
			_ = end("rollback", false)
		}
	}()
	if err := do(&Tx{api: d.api, id: begun.ID}); err != nil {
		return err
	}
	done = true
	return end("commit", true)
}

// Collection has the records of one collection, by id or by a key of your own.
type Collection struct {
	api  *api
	name string
	tx   string
}

func (c *Collection) path(parts ...string) string { return join("/v1/", c.name) + join(parts...) }

// write puts an id into the request, so that one that is sent twice is done once.
func (c *Collection) write(ctx context.Context, method, path string, body fields) (*Record, error) {
	if c.tx != "" {
		body["tx_id"] = c.tx
	} else {
		body["request_id"] = NewULID()
	}
	var answer struct {
		Record *Record `json:"record"`
	}
	err := c.api.call(ctx, request{method: method, path: path, body: body}, &answer)
	return answer.Record, err
}

// Insert inserts a document.
func (c *Collection) Insert(ctx context.Context, document any) (*Record, error) {
	return c.write(ctx, "POST", c.path("/records"), fields{"data": document})
}

// InsertKey inserts a document under a key, which must be new.
func (c *Collection) InsertKey(ctx context.Context, key string, document any) (*Record, error) {
	return c.write(ctx, "POST", c.path("/keys"), fields{"key": key, "data": document})
}

// Upsert inserts the record of a key or replaces it.
func (c *Collection) Upsert(ctx context.Context, key string, document any) (*Record, error) {
	return c.write(ctx, "POST", c.path("/keys/", key, ":upsert"), fields{"data": document})
}

// Update replaces a record.
func (c *Collection) Update(ctx context.Context, id string, document any) (*Record, error) {
	return c.write(ctx, "PUT", c.path("/records/", id), fields{"data": document})
}

// Merge applies a JSON merge patch to the record of a key.
func (c *Collection) Merge(ctx context.Context, key string, patch any) (*Record, error) {
	return c.write(ctx, "PATCH", c.path("/keys/", key), fields{"data": patch})
}

// Apply applies operators to a record, such as Ops{"$inc": Ops{"n": 1}}.
func (c *Collection) Apply(ctx context.Context, id string, operators Ops) (*Record, error) {
	return c.write(ctx, "PATCH", c.path("/records/", id), fields{"update": operators})
}

// ApplyKey applies operators to the record of a key.
func (c *Collection) ApplyKey(ctx context.Context, key string, operators Ops) (*Record, error) {
	return c.write(ctx, "PATCH", c.path("/keys/", key), fields{"update": operators})
}

// ApplyMany applies operators to every record that matches, and returns how many were changed.
func (c *Collection) ApplyMany(ctx context.Context, filter Cond, operators Ops) (int64, error) {
	body := fields{"filter": filter, "update": operators}
	if c.tx != "" {
		body["tx_id"] = c.tx
	} else {
		body["request_id"] = NewULID()
	}
	var answer struct {
		Changed int64 `json:"changed"`
	}
	err := c.api.call(ctx, request{method: "POST", path: c.path("/records:updateMany"), body: body}, &answer)
	return answer.Changed, err
}

// Ops are operators of an update and what they get.
type Ops map[string]any

// CreateIndex creates an index, as in the API: {"fields": ["city"]}, {"search": ["title"], "language":
// "en"} or {"vector": "embedding", "dims": 384, "metric": "cosine"}.
func (c *Collection) CreateIndex(ctx context.Context, index any) error {
	path := join("/v1/admin/collections/", c.name, "/indexes")
	return c.api.call(ctx, request{method: "POST", path: path, body: index}, nil)
}

// Distinct reads the different values of a field into a slice; nil matches all records.
func (c *Collection) Distinct(ctx context.Context, field string, filter Cond, values any) error {
	body := Query{Filter: filter}.body()
	body["field"] = field
	var answer struct {
		Values json.RawMessage `json:"values"`
	}
	err := c.api.call(ctx, request{method: "POST", path: c.path("/records:distinct"), body: body}, &answer)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer.Values, values)
}

// UpdateIfRev replaces a record that still has this revision; otherwise the code is REV_MISMATCH.
func (c *Collection) UpdateIfRev(ctx context.Context, id string, rev int64, document any) (*Record, error) {
	body := fields{"data": document, "expected_rev": rev}
	return c.write(ctx, "POST", c.path("/records/", id, ":updateIfRev"), body)
}

// Get reads a record by its id; nil if there is none.
func (c *Collection) Get(ctx context.Context, id string) (*Record, error) {
	return c.read(ctx, c.path("/records/", id))
}

// GetKey reads a record by its key; nil if there is none.
func (c *Collection) GetKey(ctx context.Context, key string) (*Record, error) {
	return c.read(ctx, c.path("/keys/", key))
}

func (c *Collection) read(ctx context.Context, path string) (*Record, error) {
	query := url.Values{}
	if c.tx != "" {
		query.Set("tx_id", c.tx)
	}
	var answer struct {
		Record *Record `json:"record"`
	}
	err := c.api.call(ctx, request{method: "GET", path: path, query: query}, &answer)
	var refused *APIError
	if errors.As(err, &refused) && refused.Status == http.StatusNotFound {
		return nil, nil
	}
	return answer.Record, err
}

// Delete deletes a record by its id.
func (c *Collection) Delete(ctx context.Context, id string) error {
	return c.remove(ctx, c.path("/records/", id))
}

// DeleteKey deletes a record by its key.
func (c *Collection) DeleteKey(ctx context.Context, key string) error {
	return c.remove(ctx, c.path("/keys/", key))
}

func (c *Collection) remove(ctx context.Context, path string) error {
	query := url.Values{"request_id": {NewULID()}}
	if c.tx != "" {
		query = url.Values{"tx_id": {c.tx}}
	}
	return c.api.call(ctx, request{method: "DELETE", path: path, query: query}, nil)
}

// Cond is a filter of the API; Where, And, Or and Not make them.
type Cond map[string]any

// Where is a condition on a field, such as Where("age", "gt", 40).
func Where(field, op string, value any) Cond { return Cond{"field": field, "op": op, "value": value} }

// And holds when all conditions do.
func And(all ...Cond) Cond { return Cond{"and": all} }

// Or holds when one of the conditions does.
func Or(some ...Cond) Cond { return Cond{"or": some} }

// Not holds when the condition does not.
func Not(one Cond) Cond { return Cond{"not": one} }

// Query selects records; the zero value selects all.
type Query struct {
	Filter Cond
	// OrderBy are fields; "-age" is from high to low.
	OrderBy []string
	// Limit is 0 for all.
	Limit  int
	Fields []string
	// Exclude leaves out these fields.
	Exclude []string
	// Search finds words by a search index, best first.
	Search string
	// Near finds vectors by a vector index, nearest first.
	Near *Near
}

// Near asks for the K records whose vector is nearest.
type Near struct {
	Field  string    `json:"field"`
	Vector []float32 `json:"vector"`
	K      int       `json:"k"`
}

func (q Query) body() fields {
	body := fields{}
	if q.Filter != nil {
		body["filter"] = q.Filter
	}
	if len(q.OrderBy) > 0 {
		order := make([]fields, len(q.OrderBy))
		for i, field := range q.OrderBy {
			name := strings.TrimPrefix(field, "-")
			order[i] = fields{"field": name, "desc": name != field}
		}
		body["order_by"] = order
	}
	if len(q.Fields) > 0 {
		body["fields"] = q.Fields
	}
	if len(q.Exclude) > 0 {
		body["projection"] = fields{"exclude": q.Exclude}
	}
	if q.Search != "" {
		body["search"] = fields{"text": q.Search}
	}
	if q.Near != nil {
		body["near"] = q.Near
	}
	return body
}

const findPage = 500

// Each calls do for every record that matches, page by page, until it returns an error.
func (c *Collection) Each(ctx context.Context, query Query, do func(*Record) error) error {
	body := query.body()
	if c.tx != "" {
		body["tx_id"] = c.tx
	}
	isRanked := query.Search != "" || query.Near != nil
	for left := query.Limit; ; {
		if !isRanked {
			body["limit"] = findPage
		}
		if query.Limit > 0 {
			body["limit"] = min(left, findPage)
		}
		var page struct {
			Records    []*Record `json:"records"`
			NextCursor string    `json:"next_cursor"`
		}
		if err := c.api.call(ctx, request{method: "POST", path: c.path("/records:find"), body: body}, &page); err != nil {
			return err
		}
		for _, record := range page.Records {
			if err := do(record); err != nil {
				return err
			}
		}
		left -= len(page.Records)
		if page.NextCursor == "" || (query.Limit > 0 && left <= 0) {
			return nil
		}
		body["cursor"] = page.NextCursor
	}
}

// Find returns the records that match.
func (c *Collection) Find(ctx context.Context, query Query) ([]*Record, error) {
	var found []*Record
	err := c.Each(ctx, query, func(record *Record) error {
		found = append(found, record)
		return nil
	})
	return found, err
}

// Count counts the records that match; nil matches all.
func (c *Collection) Count(ctx context.Context, filter Cond) (int64, error) {
	body := Query{Filter: filter}.body()
	body["count_only"] = true
	var answer struct {
		Count int64 `json:"count"`
	}
	err := c.api.call(ctx, request{method: "POST", path: c.path("/records:find"), body: body}, &answer)
	return answer.Count, err
}

// BulkResult is what became of one write.
type BulkResult struct {
	Status string `json:"status"`
	ID     string `json:"id"`
	Key    string `json:"key"`
	Rev    int64  `json:"rev"`
	Error  *struct {
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"error"`
}

// InsertMany inserts documents in one call; atomic: all or none.
func (c *Collection) InsertMany(ctx context.Context, documents []any, atomic bool) ([]BulkResult, error) {
	operations := make([]fields, len(documents))
	for i, document := range documents {
		operations[i] = fields{"insert": fields{"data": document}}
	}
	return c.Bulk(ctx, operations, atomic)
}

// Bulk does many writes in one call, each as in the API: insert, upsert, update or delete.
func (c *Collection) Bulk(ctx context.Context, operations any, atomic bool) ([]BulkResult, error) {
	body := fields{"operations": operations, "atomic": atomic}
	if c.tx != "" {
		body["tx_id"] = c.tx
	} else {
		body["request_id"] = NewULID()
	}
	var answer struct {
		Results []BulkResult `json:"results"`
	}
	err := c.api.call(ctx, request{method: "POST", path: c.path("/records:bulk"), body: body}, &answer)
	return answer.Results, err
}

// Change is one change of a record; Op is insert, update, delete or expire.
type Change struct {
	Op          string
	Collection  string
	Record      *Record
	Before      *Record
	Seq         int64
	ResumeToken string
}

// WatchOptions may be left out, each.
type WatchOptions struct {
	Filter Cond
	// ResumeToken continues after a change that was seen.
	ResumeToken    string
	IncludeInitial bool
	IncludeBefore  bool
}

// Watch calls do for every change, until it returns an error or the context ends. It goes on by
// itself after a lost connection, without gap or duplicate.
func (c *Collection) Watch(ctx context.Context, options WatchOptions, do func(Change) error) error {
	body := Query{Filter: options.Filter}.body()
	if options.IncludeBefore {
		body["include_before"] = true
	}
	if options.ResumeToken != "" {
		body["resume_token"] = options.ResumeToken
	} else if options.IncludeInitial {
		body["include_initial"] = true
	}
	delay := firstRetry
	for {
		err := c.watchOnce(ctx, body, func(change Change) error {
			delay = firstRetry
			return do(change)
		})
		var lost *streamLost
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.As(err, &lost) {
			return err
		}
		if err := sleep(ctx, delay); err != nil {
			return err
		}
		if delay *= 2; delay > maxRetry {
			delay = maxRetry
		}
	}
}

type streamLost struct{ cause error }

func (e *streamLost) Error() string { return "millrace: the stream broke: " + e.cause.Error() }

func (c *Collection) watchOnce(ctx context.Context, body fields, do func(Change) error) error {
	used := c.api.current.Load()
	response, err := c.api.send(ctx, used, request{method: "POST", path: c.path("/records:watch"), body: body}, "application/x-ndjson")
	if err != nil {
		c.api.current.CompareAndSwap(used, used+1)
		return &streamLost{err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(io.LimitReader(response.Body, 1<<20))
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		refused := refusal(response.StatusCode, content, time.Duration(seconds)*time.Second)
		if refused.Status == http.StatusServiceUnavailable || refused.Status == http.StatusTooManyRequests {
			return &streamLost{refused}
		}
		return refused
	}
	lines := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return &streamLost{err}
		}
		if len(line) < 2 {
			continue
		}
		if err := take(line, body, do); err != nil {
			return err
		}
	}
}

// take hands on the changes of one message; only then is the message behind us.
func take(line []byte, body fields, do func(Change) error) error {
	var message struct {
		Seq         int64           `json:"seq"`
		ResumeToken string          `json:"resume_token"`
		Error       json.RawMessage `json:"error"`
		Changes     []struct {
			Op         string  `json:"op"`
			Collection string  `json:"collection"`
			Record     *Record `json:"record"`
			Before     *Record `json:"before"`
		} `json:"changes"`
	}
	if err := json.Unmarshal(line, &message); err != nil {
		return fmt.Errorf("millrace: a line of the watch is not what was expected: %w", err)
	}
	if message.Error != nil {
		return refusal(http.StatusInternalServerError, message.Error, 0)
	}
	for _, each := range message.Changes {
		err := do(Change{
			Op:          strings.ToLower(strings.TrimPrefix(each.Op, "CHANGE_OP_")),
			Collection:  each.Collection,
			Record:      each.Record,
			Before:      each.Before,
			Seq:         message.Seq,
			ResumeToken: message.ResumeToken,
		})
		if err != nil {
			return err
		}
	}
	body["resume_token"] = message.ResumeToken
	delete(body, "include_initial")
	return nil
}
