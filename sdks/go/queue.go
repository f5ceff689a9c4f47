package millrace

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Status is where a task stands.
type Status string

// The states of a task.
const (
	Pending   Status = "PENDING"
	InFlight  Status = "IN_FLIGHT"
	Succeeded Status = "SUCCEEDED"
	Dead      Status = "DEAD"
)

// Task is a task as the queue knows it.
type Task struct {
	ID                 string            `json:"id"`
	Queue              string            `json:"queue"`
	HandlerRef         string            `json:"handler_ref"`
	Status             Status            `json:"status"`
	Attempt            int               `json:"attempt"`
	MaxAttempts        int               `json:"max_attempts"`
	RedriveCount       int               `json:"redrive_count"`
	Priority           int               `json:"priority"`
	GroupKey           string            `json:"group_key"`
	Headers            map[string]string `json:"headers"`
	Payload            []byte            `json:"payload"`
	PayloadContentType string            `json:"payload_content_type"`
	Result             json.RawMessage   `json:"result"`
	DeadReason         string            `json:"dead_reason"`
	LastError          *struct {
		Type    string `json:"error_type"`
		Message string `json:"message"`
	} `json:"last_error"`
	Progress *struct {
		Percent *float64 `json:"percent"`
		Message string   `json:"message"`
	} `json:"progress"`
}

// Decode reads a JSON payload.
func (t *Task) Decode(payload any) error {
	if len(t.Payload) == 0 {
		return nil
	}
	return json.Unmarshal(t.Payload, payload)
}

func (t *Task) failure() error {
	failed := &TaskError{TaskID: t.ID, Message: t.DeadReason}
	if t.LastError != nil {
		failed.Type = t.LastError.Type
		failed.Message = t.LastError.Type + ": " + t.LastError.Message
	}
	return failed
}

// SubmitOptions may be nil, and any field may be left out.
type SubmitOptions struct {
	// ID is a ULID; submitting it again changes nothing.
	ID        string
	Delay     time.Duration
	RunAt     time.Time
	ExpiresAt time.Time
	// Priority is 0 to 9, higher first; nil is 4.
	Priority *int
	GroupKey string
	Headers  map[string]string
	// UniqueKey: while a task with it waits or runs, a second submit returns that task.
	UniqueKey string
	UniqueFor time.Duration
	// Debounce, with a unique key: runs so long after the last submit, whose payload wins.
	Debounce    time.Duration
	MaxAttempts int
	// Timeout is how long an attempt may take.
	Timeout time.Duration
	// Retain is how long the task is held after its end.
	Retain time.Duration
	// Labels: only workers that name all of them get the task.
	Labels []string
	// DependsOn are ids of tasks that must succeed first; of a flow, also keys.
	DependsOn []string
}

type fields map[string]any

func submitBody(ref string, payload any, options *SubmitOptions) (fields, error) {
	if options == nil {
		options = &SubmitOptions{}
	}
	body := fields{"handler_ref": ref, "id": options.ID}
	if options.ID == "" {
		// With an id of its own it may be sent twice.
		body["id"] = NewULID()
	}
	if err := putPayload(body, payload); err != nil {
		return nil, err
	}
	if options.Delay != 0 {
		body["delay_ms"] = options.Delay.Milliseconds()
	}
	if !options.RunAt.IsZero() {
		body["run_at"] = stamp(options.RunAt)
	}
	if !options.ExpiresAt.IsZero() {
		body["expires_at"] = stamp(options.ExpiresAt)
	}
	if options.Priority != nil {
		body["priority"] = *options.Priority
	}
	if options.Headers != nil {
		body["headers"] = options.Headers
	}
	if options.GroupKey != "" {
		body["group_key"] = options.GroupKey
	}
	if options.UniqueKey != "" {
		body["unique_key"] = options.UniqueKey
	}
	for name, duration := range map[string]time.Duration{
		"unique_for_ms": options.UniqueFor, "debounce_ms": options.Debounce,
		"timeout_ms": options.Timeout, "retain_ms": options.Retain,
	} {
		if duration != 0 {
			body[name] = duration.Milliseconds()
		}
	}
	if options.MaxAttempts != 0 {
		body["max_attempts"] = options.MaxAttempts
	}
	if len(options.Labels) > 0 {
		body["labels"] = options.Labels
	}
	if len(options.DependsOn) > 0 {
		body["depends_on"] = options.DependsOn
	}
	return body, nil
}

// putPayload: bytes stay bytes, nil is no payload, anything else is JSON.
func putPayload(body fields, payload any) error {
	if payload == nil {
		return nil
	}
	content, isBytes := payload.([]byte)
	if !isBytes {
		encoded, err := json.Marshal(payload)
		if err != nil {
			return fmt.Errorf("millrace: the payload cannot be written as JSON: %w", err)
		}
		content = encoded
		body["payload_content_type"] = "application/json"
	}
	body["payload"] = base64.StdEncoding.EncodeToString(content)
	return nil
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// Queue is a client of a queue server. It may be used by several goroutines at once.
type Queue struct{ api *api }

// NewQueue makes a client; it connects with its first call.
func NewQueue(options Options) (*Queue, error) {
	api, err := newAPI(options)
	if err != nil {
		return nil, err
	}
	return &Queue{api: api}, nil
}

// Submit submits a task. When it returns without an error, the task is stored and will be run.
func (q *Queue) Submit(ctx context.Context, queue, ref string, payload any, options *SubmitOptions) (*Task, error) {
	body, err := submitBody(ref, payload, options)
	if err != nil {
		return nil, err
	}
	task := &Task{Queue: queue, HandlerRef: ref}
	path := join("/v1/queues/", queue, "/tasks")
	return task, q.api.call(ctx, request{method: "POST", path: path, body: body}, task)
}

// FlowTask is a task of a flow. DependsOn of its options may name keys of the flow.
type FlowTask struct {
	Key, Queue, Ref string
	Payload         any
	Options         *SubmitOptions
}

// SubmitFlow submits tasks that depend on each other, all or none, and returns their ids by key.
func (q *Queue) SubmitFlow(ctx context.Context, tasks []FlowTask) (map[string]string, error) {
	items := make([]fields, len(tasks))
	for i, task := range tasks {
		item, err := submitBody(task.Ref, task.Payload, task.Options)
		if err != nil {
			return nil, err
		}
		item["key"], item["queue"] = task.Key, task.Queue
		items[i] = item
	}
	var answer struct {
		Tasks []struct{ Key, ID string } `json:"tasks"`
	}
	body := fields{"flow_id": NewULID(), "tasks": items}
	err := q.api.call(ctx, request{method: "POST", path: "/v1/flows", body: body}, &answer)
	ids := map[string]string{}
	for _, task := range answer.Tasks {
		ids[task.Key] = task.ID
	}
	return ids, err
}

// Signal sends a signal to a task, which may wait for it now or later. The same id is one signal;
// without one it gets its own.
func (q *Queue) Signal(ctx context.Context, taskID, name string, payload any, id string) error {
	return q.signal(ctx, join("/v1/tasks/", taskID, "/signals"), fields{"name": name, "payload": payload}, id)
}

// SignalKey sends a signal to the task that holds a unique key.
func (q *Queue) SignalKey(ctx context.Context, queue, uniqueKey, name string, payload any, id string) error {
	body := fields{"unique_key": uniqueKey, "name": name, "payload": payload}
	return q.signal(ctx, join("/v1/queues/", queue, "/signals"), body, id)
}

func (q *Queue) signal(ctx context.Context, path string, body fields, id string) error {
	if body["id"] = id; id == "" {
		body["id"] = NewULID()
	}
	return q.api.call(ctx, request{method: "POST", path: path, body: body}, nil)
}

// Node is a task of a tree.
type Node struct {
	ID         string   `json:"id"`
	Queue      string   `json:"queue"`
	HandlerRef string   `json:"handler_ref"`
	Status     Status   `json:"status"`
	Steps      []string `json:"steps"`
	Children   []*Node  `json:"children"`
	Hidden     bool     `json:"hidden"`
}

// Tree reads a task with its children and theirs.
func (q *Queue) Tree(ctx context.Context, id string) (*Node, error) {
	var answer struct {
		Root *Node `json:"root"`
	}
	err := q.api.call(ctx, request{method: "GET", path: join("/v1/tasks/", id, "/tree")}, &answer)
	return answer.Root, err
}

// SubmitResult is a task or its refusal.
type SubmitResult struct {
	Task *Task
	Err  error
}

const maxBatch = 500

// SubmitMany submits a task for each payload, in batches; there is a result for each.
func (q *Queue) SubmitMany(ctx context.Context, queue, ref string, payloads []any, options *SubmitOptions) ([]SubmitResult, error) {
	results := make([]SubmitResult, 0, len(payloads))
	path := join("/v1/queues/", queue, "/tasks:batch")
	for start := 0; start < len(payloads); start += maxBatch {
		end := min(start+maxBatch, len(payloads))
		batch := make([]fields, 0, end-start)
		for _, payload := range payloads[start:end] {
			body, err := submitBody(ref, payload, options)
			if err != nil {
				return results, err
			}
			batch = append(batch, body)
		}
		var answers []struct {
			Status   int             `json:"status"`
			Envelope *Task           `json:"envelope"`
			Error    json.RawMessage `json:"error"`
		}
		if err := q.api.call(ctx, request{method: "POST", path: path, body: batch}, &answers); err != nil {
			return results, err
		}
		for _, answer := range answers {
			if answer.Envelope != nil {
				results = append(results, SubmitResult{Task: answer.Envelope})
			} else {
				results = append(results, SubmitResult{Err: refusal(answer.Status, answer.Error, 0)})
			}
		}
	}
	return results, nil
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

const maxWait = 30 * time.Second

// Wait returns the task when it has ended; a dead one is a *TaskError. The context bounds the wait.
func (q *Queue) Wait(ctx context.Context, id string) (*Task, error) {
	for {
		wait := maxWait
		if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
			wait = time.Until(deadline)
		}
		task, err := q.get(ctx, id, wait)
		switch {
		case err != nil:
			return nil, err
		case task.Status == Succeeded:
			return task, nil
		case task.Status == Dead:
			return task, task.failure()
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, fmt.Errorf("millrace: the task %s did not end in time, and goes on: %w", id, err)
		}
	}
}

// SubmitAndWait submits a task and reads its result into result, which may be nil.
func (q *Queue) SubmitAndWait(ctx context.Context, queue, ref string, payload any, options *SubmitOptions, result any) error {
	submitted, err := q.Submit(ctx, queue, ref, payload, options)
	if err != nil {
		return err
	}
	task, err := q.Wait(ctx, submitted.ID)
	if err != nil || result == nil || len(task.Result) == 0 {
		return err
	}
	return json.Unmarshal(task.Result, result)
}

// Get reads a task.
func (q *Queue) Get(ctx context.Context, id string) (*Task, error) { return q.get(ctx, id, 0) }

func (q *Queue) get(ctx context.Context, id string, wait time.Duration) (*Task, error) {
	query := url.Values{}
	if wait > 0 {
		query.Set("wait_ms", strconv.FormatInt(wait.Milliseconds(), 10))
	}
	task := &Task{}
	return task, q.api.call(ctx, request{method: "GET", path: join("/v1/tasks/", id), query: query}, task)
}

// Filter selects tasks of a list; the zero value selects all.
type Filter struct {
	Statuses   []Status
	HandlerRef string
	GroupKey   string
	ErrorType  string
	From, To   time.Time
}

func (f Filter) query() url.Values {
	query := url.Values{"limit": {"200"}}
	for name, value := range map[string]string{"handler_ref": f.HandlerRef, "group_key": f.GroupKey, "error_type": f.ErrorType} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if len(f.Statuses) > 0 {
		texts := make([]string, len(f.Statuses))
		for i, status := range f.Statuses {
			texts[i] = string(status)
		}
		query.Set("status", strings.Join(texts, ","))
	}
	if !f.From.IsZero() {
		query.Set("from", stamp(f.From))
	}
	if !f.To.IsZero() {
		query.Set("to", stamp(f.To))
	}
	return query
}

// Each calls do for every task that matches, until it returns an error.
func (q *Queue) Each(ctx context.Context, queue string, filter Filter, do func(*Task) error) error {
	return q.pages(ctx, join("/v1/queues/", queue, "/tasks"), filter, do)
}

// EachDead calls do for every task of the dead-letter queue that matches.
func (q *Queue) EachDead(ctx context.Context, queue string, filter Filter, do func(*Task) error) error {
	return q.pages(ctx, join("/v1/queues/", queue, "/dlq"), filter, do)
}

func (q *Queue) pages(ctx context.Context, path string, filter Filter, do func(*Task) error) error {
	query := filter.query()
	for {
		var page struct {
			Tasks      []*Task `json:"tasks"`
			NextCursor string  `json:"next_cursor"`
		}
		if err := q.api.call(ctx, request{method: "GET", path: path, query: query}, &page); err != nil {
			return err
		}
		for _, task := range page.Tasks {
			if err := do(task); err != nil {
				return err
			}
		}
		if page.NextCursor == "" {
			return nil
		}
		query.Set("cursor", page.NextCursor)
	}
}

// Stats are counts of a queue.
type Stats struct {
	Pending   int64 `json:"pending"`
	InFlight  int64 `json:"in_flight"`
	Dead      int64 `json:"dlq_depth"`
	Succeeded int64 `json:"succeeded_total"`
	Failed    int64 `json:"failed_total"`
}

// Stats counts the tasks of a queue.
func (q *Queue) Stats(ctx context.Context, queue string) (Stats, error) {
	var stats Stats
	err := q.api.call(ctx, request{method: "GET", path: join("/v1/queues/", queue, "/stats")}, &stats)
	return stats, err
}

// Cancel cancels a task; a handler that runs is told so.
func (q *Queue) Cancel(ctx context.Context, id, reason string) error {
	body := fields{}
	if reason != "" {
		body["reason"] = reason
	}
	return q.api.call(ctx, request{method: "POST", path: join("/v1/tasks/", id, ":cancel"), body: body}, nil)
}

// RunNow makes a waiting task due.
func (q *Queue) RunNow(ctx context.Context, id string) error {
	return q.api.call(ctx, request{method: "POST", path: join("/v1/tasks/", id, ":run-now")}, nil)
}

// Reschedule gives a waiting task another time.
func (q *Queue) Reschedule(ctx context.Context, id string, at time.Time) error {
	body := fields{"run_at": stamp(at)}
	return q.api.call(ctx, request{method: "PATCH", path: join("/v1/tasks/", id), body: body}, nil)
}

// Configure creates or changes a queue. The config is as in the API, a struct or a map.
func (q *Queue) Configure(ctx context.Context, queue string, config any) error {
	path := join("/v1/admin/queues/", queue, "/config")
	return q.api.call(ctx, request{method: "PUT", path: path, body: config}, nil)
}

// Pause stops the delivery of a queue; Resume starts it again.
func (q *Queue) Pause(ctx context.Context, queue string) error {
	return q.api.call(ctx, request{method: "POST", path: join("/v1/admin/queues/", queue, ":pause")}, nil)
}

// Resume starts the delivery of a queue that was paused.
func (q *Queue) Resume(ctx context.Context, queue string) error {
	return q.api.call(ctx, request{method: "POST", path: join("/v1/admin/queues/", queue, ":resume")}, nil)
}

// DeadSelector selects dead tasks: by IDs, or all of a queue that match.
type DeadSelector struct {
	IDs        []string
	All        bool
	ErrorType  string
	HandlerRef string
	DryRun     bool
	// FromStep, for a redrive, drops this step and those recorded after it; ResetSteps drops all.
	FromStep   string
	ResetSteps bool
}

func (s DeadSelector) body() (fields, error) {
	body := fields{}
	if s.DryRun {
		body["dry_run"] = true
	}
	if s.FromStep != "" {
		body["from_step"] = s.FromStep
	}
	if s.ResetSteps {
		body["reset_steps"] = true
	}
	if s.IDs != nil {
		body["ids"] = s.IDs
		return body, nil
	}
	filter := fields{}
	if s.ErrorType != "" {
		filter["error_type"] = s.ErrorType
	}
	if s.HandlerRef != "" {
		filter["handler_ref"] = s.HandlerRef
	}
	if len(filter) == 0 && !s.All {
		return nil, errors.New("millrace: give IDs, ErrorType, HandlerRef or All")
	}
	body["filter"] = filter
	return body, nil
}

// Redrive runs dead tasks again and returns how many.
func (q *Queue) Redrive(ctx context.Context, queue string, selector DeadSelector) (int, error) {
	return q.act(ctx, join("/v1/queues/", queue, "/dlq:redrive"), selector)
}

// Purge deletes dead tasks and returns how many.
func (q *Queue) Purge(ctx context.Context, queue string, selector DeadSelector) (int, error) {
	return q.act(ctx, join("/v1/queues/", queue, "/dlq:purge"), selector)
}

func (q *Queue) act(ctx context.Context, path string, selector DeadSelector) (int, error) {
	body, err := selector.body()
	if err != nil {
		return 0, err
	}
	// A call that stopped after a while, with tasks left, is repeated.
	for total := 0; ; {
		var answer struct {
			Count    int   `json:"count"`
			Complete *bool `json:"complete"`
		}
		err := q.api.call(ctx, request{method: "POST", path: path, body: body}, &answer)
		total += answer.Count
		if err != nil || answer.Complete == nil || *answer.Complete {
			return total, err
		}
	}
}

// Schedule says when a task is submitted again and again: exactly one of Cron and Every.
type Schedule struct {
	Cron     string
	Every    time.Duration
	Timezone string
	Ref      string
	Payload  any
}

// PutSchedule creates or replaces a schedule.
func (q *Queue) PutSchedule(ctx context.Context, queue, name string, schedule Schedule) error {
	task := fields{"handler_ref": schedule.Ref}
	if err := putPayload(task, schedule.Payload); err != nil {
		return err
	}
	body := fields{"task": task}
	if schedule.Cron != "" {
		body["cron"] = schedule.Cron
	}
	if schedule.Every != 0 {
		body["every_ms"] = schedule.Every.Milliseconds()
	}
	if schedule.Timezone != "" {
		body["timezone"] = schedule.Timezone
	}
	path := join("/v1/queues/", queue, "/schedules/", name)
	return q.api.call(ctx, request{method: "PUT", path: path, body: body}, nil)
}

// DeleteSchedule deletes a schedule.
func (q *Queue) DeleteSchedule(ctx context.Context, queue, name string) error {
	path := join("/v1/queues/", queue, "/schedules/", name)
	return q.api.call(ctx, request{method: "DELETE", path: path}, nil)
}
