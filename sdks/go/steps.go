package millrace

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand"
	"sync"
	"time"
)

// ErrSuspended is what a step returns when the task has to wait. The handler returns it, and is run
// again when the wait is over; steps that are recorded are not.
var ErrSuspended = errors.New("the task is suspended")

// StepError says that a step or a child task failed for good. Returned by a handler it ends the task.
type StepError struct {
	// Type names the error, such as CHILD_FAILED.
	Type    string
	Message string
	cause   error
}

func (e *StepError) Error() string { return e.Message }
func (e *StepError) Unwrap() error { return e.cause }

// StepOptions may be nil, and any field may be left out.
type StepOptions struct {
	// Attempts is how often the step is tried; as often as the task may be if absent.
	Attempts int
	// Backoff is the time before the second try, 1 s if absent; it doubles with each one. The task is
	// suspended meanwhile.
	Backoff time.Duration
}

// Ended is a task that another one depends on, or waited for.
type Ended struct {
	ID         string          `json:"id"`
	Key        string          `json:"key"`
	HandlerRef string          `json:"handler_ref"`
	Status     Status          `json:"status"`
	Result     json.RawMessage `json:"result"`
}

type step struct {
	Name   string          `json:"name"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

type sent struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Payload json.RawMessage `json:"payload"`
}

// history is what a claim says of earlier runs.
type history struct {
	Steps        []*step  `json:"steps"`
	Signals      []*sent  `json:"signals"`
	Children     []*Ended `json:"children"`
	Dependencies []*Ended `json:"dependencies"`
}

type wait struct {
	until  int64
	signal string
	tasks  []string
	// Those of tasks that have not ended.
	open []string
}

// steps are those of one run of a handler.
type steps struct {
	mu       sync.Mutex
	recorded map[string]*step
	signals  []*sent
	children map[string]*Ended
	used     map[string]bool
	waits    []wait
	unnamed  int
}

const (
	maxChildren = 1_000
	maxBackoff  = time.Hour
)

func newSteps(h history) *steps {
	s := &steps{recorded: map[string]*step{}, signals: h.Signals, children: map[string]*Ended{}, used: map[string]bool{}}
	for _, each := range h.Steps {
		s.recorded[each.Name] = each
	}
	for _, each := range h.Children {
		s.children[each.ID] = each
	}
	return s
}

type until struct {
	Until int64 `json:"until"`
}

// Step runs a function and records its result. In a later run of the handler the recorded result is
// returned and the function is not run. A name is used once in a run.
func Step[T any](ctx context.Context, job *Job, name string, run func(ctx context.Context) (T, error), options *StepOptions) (T, error) {
	var result T
	known, err := job.claimStep(name)
	if err != nil {
		return result, err
	}
	if known != nil {
		return result, known.outcome(&result)
	}
	attempt, err := job.attempt(name)
	if err != nil {
		return result, err
	}
	startedAt := time.Now()
	result, err = run(ctx)
	if err != nil {
		if ctx.Err() != nil || errors.Is(err, ErrSuspended) || errors.Is(err, ErrLeaseLost) {
			return result, err
		}
		return result, job.stepFailed(ctx, name, err, attempt, options, startedAt)
	}
	recorded, err := job.record(ctx, name, fields{"result": result, "started_at": stamp(startedAt)})
	if err != nil {
		return result, err
	}
	var stored T
	return stored, recorded.outcome(&stored)
}

// StepKey is an idempotency key of a step: the same in every attempt.
func (j *Job) StepKey(name string) string { return j.Task.ID + ":" + name }

// Dependencies are the tasks that this one depends on, in the order given.
func (j *Job) Dependencies() []*Ended { return j.dependencies }

// Sleep suspends the task; no worker is held meanwhile.
func (j *Job) Sleep(ctx context.Context, name string, duration time.Duration) error {
	known, err := j.claimStep(name)
	if err != nil {
		return err
	}
	if known == nil {
		end := until{time.Now().Add(duration).UnixMilli()}
		if known, err = j.record(ctx, name, fields{"result": end}); err != nil {
			return err
		}
	}
	var end until
	if err := known.outcome(&end); err != nil {
		return err
	}
	if end.Until > time.Now().UnixMilli() {
		return j.wait(wait{until: end.Until})
	}
	return nil
}

// Signal waits for a signal and reads its payload, which may be nil. It returns false after the
// timeout; 0 waits for ever.
func (j *Job) Signal(ctx context.Context, name string, timeout time.Duration, payload any) (bool, error) {
	known, err := j.claimStep(name)
	if err != nil {
		return false, err
	}
	if known == nil {
		if known, err = j.receive(ctx, name, timeout); err != nil {
			return false, err
		}
	}
	var received struct {
		Payload *json.RawMessage `json:"payload"`
		ID      string           `json:"id"`
	}
	if err := known.outcome(&received); err != nil || received.Payload == nil && received.ID == "" {
		return false, err
	}
	if payload == nil || received.Payload == nil {
		return true, nil
	}
	return true, json.Unmarshal(*received.Payload, payload)
}

func (j *Job) receive(ctx context.Context, name string, timeout time.Duration) (*step, error) {
	j.steps.mu.Lock()
	var found *sent
	for i, each := range j.steps.signals {
		if each.Name == name {
			found = each
			j.steps.signals = append(j.steps.signals[:i:i], j.steps.signals[i+1:]...)
			break
		}
	}
	j.steps.mu.Unlock()
	if found != nil {
		result := fields{"payload": found.Payload, "id": found.ID}
		return j.record(ctx, name, fields{"result": result, "consumes": []string{found.ID}})
	}
	if timeout <= 0 {
		return nil, j.wait(wait{signal: name})
	}
	deadline, err := j.value(ctx, name+"~until", func() any { return time.Now().Add(timeout).UnixMilli() })
	if err != nil {
		return nil, err
	}
	var end int64
	if err := deadline.outcome(&end); err != nil {
		return nil, err
	}
	if end > time.Now().UnixMilli() {
		return nil, j.wait(wait{signal: name, until: end})
	}
	return j.record(ctx, name, fields{"result": fields{}})
}

// Submit submits a child task and reads its result, which may be nil, when it has ended.
func (j *Job) Submit(ctx context.Context, name, queue, ref string, payload any, options *SubmitOptions, result any) error {
	return j.submitAll(ctx, name, queue, ref, []any{payload}, options, result, true)
}

// SubmitMany submits up to 1,000 child tasks and reads their results, in order, into a slice.
func (j *Job) SubmitMany(ctx context.Context, name, queue, ref string, payloads []any, options *SubmitOptions, results any) error {
	if len(payloads) > maxChildren {
		return Permanent(fmt.Errorf("SubmitMany takes at most %d tasks", maxChildren))
	}
	return j.submitAll(ctx, name, queue, ref, payloads, options, results, false)
}

// Parallel runs branches side by side; the task is suspended when each of them is done or waits.
func (j *Job) Parallel(ctx context.Context, branches ...func(ctx context.Context) error) error {
	found := make([]error, len(branches))
	var all sync.WaitGroup
	for i, branch := range branches {
		all.Add(1)
		go func(i int, branch func(ctx context.Context) error) {
			defer all.Done()
			found[i] = branch(ctx)
		}(i, branch)
	}
	all.Wait()
	var suspended error
	for _, err := range found {
		if err != nil && !errors.Is(err, ErrSuspended) {
			return err
		}
		if err != nil {
			suspended = err
		}
	}
	return suspended
}

// Now is the time of the first run.
func (j *Job) Now(ctx context.Context) (time.Time, error) {
	var ms int64
	err := j.unnamed(ctx, "now", func() any { return time.Now().UnixMilli() }, &ms)
	return time.UnixMilli(ms), err
}

// Random is from 0 up to 1, the same in every run.
func (j *Job) Random(ctx context.Context) (float64, error) {
	var number float64
	err := j.unnamed(ctx, "random", func() any { return mathrand.Float64() }, &number)
	return number, err
}

// NewID is a UUID, the same in every run.
func (j *Job) NewID(ctx context.Context) (string, error) {
	var id string
	err := j.unnamed(ctx, "id", func() any {
		b := make([]byte, 16)
		if _, err := rand.Read(b); err != nil {
			panic(err)
		}
		b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}, &id)
	return id, err
}

func (j *Job) unnamed(ctx context.Context, kind string, make func() any, result any) error {
	j.steps.mu.Lock()
	j.steps.unnamed++
	name := fmt.Sprintf("%s~%d", kind, j.steps.unnamed)
	j.steps.mu.Unlock()
	recorded, err := j.value(ctx, name, make)
	if err != nil {
		return err
	}
	return recorded.outcome(result)
}

func (j *Job) value(ctx context.Context, name string, make func() any) (*step, error) {
	known, err := j.claimStep(name)
	if err != nil || known != nil {
		return known, err
	}
	return j.record(ctx, name, fields{"result": make()})
}

// claimStep is the recorded step, if any.
func (j *Job) claimStep(name string) (*step, error) {
	j.steps.mu.Lock()
	defer j.steps.mu.Unlock()
	if j.steps.used[name] {
		return nil, Permanent(fmt.Errorf("the step %s is used twice in one run; give each its own name, such as %s-2", name, name))
	}
	j.steps.used[name] = true
	return j.steps.recorded[name], nil
}

// attempt is the number of the try to make now; it suspends until then.
func (j *Job) attempt(name string) (int, error) {
	j.steps.mu.Lock()
	attempt, last := 1, (*step)(nil)
	for {
		tried := j.steps.recorded[fmt.Sprintf("%s~%d", name, attempt)]
		if tried == nil {
			break
		}
		attempt, last = attempt+1, tried
	}
	j.steps.mu.Unlock()
	if last == nil {
		return attempt, nil
	}
	var end until
	if err := json.Unmarshal(last.Result, &end); err != nil {
		return 0, err
	}
	if end.Until > time.Now().UnixMilli() {
		return 0, j.wait(wait{until: end.Until})
	}
	return attempt, nil
}

// stepFailed records the failure, and suspends the task until the next try if there is one.
func (j *Job) stepFailed(ctx context.Context, name string, cause error, attempt int, options *StepOptions, startedAt time.Time) error {
	if options == nil {
		options = &StepOptions{}
	}
	most, backoff := options.Attempts, options.Backoff
	if most <= 0 {
		most = j.Task.MaxAttempts
	}
	if backoff <= 0 {
		backoff = time.Second
	}
	failure := fields{"type": errorType(cause), "message": cut(cause.Error(), 1_000)}
	var final *permanent
	if isFinal := errors.As(cause, &final); isFinal || attempt >= most {
		if _, err := j.record(ctx, name, fields{"error": failure, "started_at": stamp(startedAt)}); err != nil {
			return err
		}
		if isFinal {
			return cause
		}
		return &StepError{Type: errorType(cause), Message: cause.Error(), cause: cause}
	}
	for i := 1; i < attempt && backoff < maxBackoff; i++ {
		backoff *= 2
	}
	var later *retryLater
	if errors.As(cause, &later) && later.after > backoff {
		backoff = later.after
	}
	end := until{time.Now().Add(backoff).UnixMilli()}
	tried := fields{"result": end, "error": failure, "started_at": stamp(startedAt)}
	if _, err := j.record(ctx, fmt.Sprintf("%s~%d", name, attempt), tried); err != nil {
		return err
	}
	return j.wait(wait{until: end.Until})
}

func (j *Job) submitAll(ctx context.Context, name, queue, ref string, payloads []any, options *SubmitOptions, result any, single bool) error {
	known, err := j.claimStep(name)
	if err != nil {
		return err
	}
	if known != nil {
		return known.outcome(result)
	}
	ids, open, err := j.submitChildren(ctx, name, queue, ref, payloads, options)
	if err != nil {
		return err
	}
	results := make([]json.RawMessage, len(ids))
	for i, id := range ids {
		child := j.steps.children[id]
		if child == nil || !isEnded(child.Status) {
			return j.wait(wait{tasks: ids, open: open})
		}
		if results[i] = child.Result; len(child.Result) == 0 {
			results[i] = json.RawMessage("null")
		}
	}
	for _, id := range ids {
		if j.steps.children[id].Status == Dead {
			failed := &StepError{Type: "CHILD_FAILED", Message: fmt.Sprintf("the child task %s of the step %s failed", id, name)}
			if _, err := j.record(ctx, name, fields{"error": fields{"type": failed.Type, "message": failed.Message}}); err != nil {
				return err
			}
			return failed
		}
	}
	var stored any = results
	if single {
		stored = results[0]
	}
	recorded, err := j.record(ctx, name, fields{"result": stored})
	if err != nil {
		return err
	}
	return recorded.outcome(result)
}

// submitChildren returns the ids of all children, and of those that have not ended.
func (j *Job) submitChildren(ctx context.Context, name, queue, ref string, payloads []any, options *SubmitOptions) (ids, open []string, err error) {
	ids = make([]string, len(payloads))
	ended := map[string]bool{}
	var bodies []fields
	for i, payload := range payloads {
		ids[i] = childID(j.Task, fmt.Sprintf("%s#%d", name, i))
		if child := j.steps.children[ids[i]]; child != nil {
			ended[ids[i]] = isEnded(child.Status)
			continue
		}
		body, err := submitBody(ref, payload, options)
		if err != nil {
			return nil, nil, err
		}
		body["id"], body["parent_id"], body["parent_lease_token"] = ids[i], j.Task.ID, j.running.token
		bodies = append(bodies, body)
	}
	for start := 0; start < len(bodies); start += maxBatch {
		var answers []struct {
			Status   int             `json:"status"`
			Error    json.RawMessage `json:"error"`
			Envelope struct {
				ID     string `json:"id"`
				Status Status `json:"status"`
			} `json:"envelope"`
		}
		batch := bodies[start:min(start+maxBatch, len(bodies))]
		if err := j.underLease(ctx, join("/v1/queues/", queue, "/tasks:batch"), batch, &answers); err != nil {
			return nil, nil, err
		}
		for _, answer := range answers {
			if answer.Error != nil {
				return nil, nil, Permanent(refusal(answer.Status, answer.Error, 0))
			}
			ended[answer.Envelope.ID] = isEnded(answer.Envelope.Status)
		}
	}
	for _, id := range ids {
		if !ended[id] {
			open = append(open, id)
		}
	}
	return ids, open, nil
}

func (j *Job) record(ctx context.Context, name string, about fields) (*step, error) {
	about["lease_token"], about["name"] = j.running.token, name
	recorded := &step{}
	if err := j.underLease(ctx, join("/v1/tasks/", j.Task.ID, "/steps"), about, recorded); err != nil {
		return nil, err
	}
	j.steps.mu.Lock()
	j.steps.recorded[name] = recorded
	j.steps.mu.Unlock()
	return recorded, nil
}

func (j *Job) underLease(ctx context.Context, path string, body, answer any) error {
	err := j.running.worker.queue.api.call(ctx, request{method: "POST", path: path, body: body}, answer)
	if IsCode(err, "LEASE_LOST") || IsCode(err, "TASK_ENDED") {
		j.running.stop(ErrLeaseLost)
		return ErrLeaseLost
	}
	return err
}

func (j *Job) wait(wait wait) error {
	j.steps.mu.Lock()
	j.steps.waits = append(j.steps.waits, wait)
	j.steps.mu.Unlock()
	return ErrSuspended
}

// suspension is one wait of all branches: the first event wakes the task.
func (s *steps) suspension() fields {
	s.mu.Lock()
	defer s.mu.Unlock()
	suspend := fields{}
	var signals, tasks []string
	end := int64(0)
	for _, each := range s.waits {
		if each.until > 0 && (end == 0 || each.until < end) {
			end = each.until
		}
		if each.signal != "" {
			signals = append(signals, each.signal)
		}
		// Beside other branches, tasks that have ended would wake the task again and again. Once all
		// have ended, waiting for them gets their results.
		if len(s.waits) > 1 && len(each.open) > 0 {
			tasks = append(tasks, each.open[len(each.open)-1])
		} else {
			tasks = append(tasks, each.tasks...)
		}
	}
	if end > 0 {
		suspend["until"] = stamp(time.UnixMilli(end))
	}
	if len(signals) > 0 {
		suspend["signals"] = signals
	}
	if len(tasks) > 0 {
		suspend["tasks"] = tasks[:min(len(tasks), maxChildren)]
	}
	if len(s.waits) == 1 && len(tasks) > 1 {
		suspend["mode"] = "all"
	}
	return suspend
}

// outcome reads the result of a recorded step; nil reads nothing.
func (s *step) outcome(result any) error {
	if s.Error != nil {
		return &StepError{Type: s.Error.Type, Message: s.Error.Message}
	}
	if result == nil || len(s.Result) == 0 {
		return nil
	}
	return json.Unmarshal(s.Result, result)
}

// childID is the same ULID in every run, so that a child is submitted once; another after a redrive.
func childID(task *Task, name string) string {
	hash := sha256.Sum256([]byte(fmt.Sprintf("%s %d %s", task.ID, task.RedriveCount, name)))
	id := []byte(task.ID[:10])
	for _, b := range hash[:16] {
		id = append(id, alphabet[b%32])
	}
	return string(id)
}

func isEnded(status Status) bool {
	return status == Succeeded || status == Dead
}
