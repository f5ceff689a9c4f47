package millrace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand"
	"net/url"
	"reflect"
	"regexp"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// Job is one run of a handler.
type Job struct {
	Task         *Task
	running      *running
	steps        *steps
	dependencies []*Ended
}

// Progress reports progress, and keeps the lease. A percent below 0 is unknown.
func (j *Job) Progress(ctx context.Context, percent float64, message string) error {
	progress := fields{"percent": percent, "message": message}
	if percent < 0 {
		progress["percent"] = nil
	}
	return j.running.extend(ctx, progress)
}

// Cause says why the context of the handler ended: ErrCancelled, ErrLeaseLost or ErrStopping.
func (j *Job) Cause() error {
	j.running.mu.Lock()
	defer j.running.mu.Unlock()
	return j.running.cause
}

// Handler runs one task. What it returns is the result of the task, as JSON, at most 64 KiB; an
// error is a failed attempt. The context ends when the result will not be taken any more.
type Handler func(ctx context.Context, job *Job) (any, error)

// Handle makes a handler of a function with a typed payload and result.
func Handle[P, R any](run func(ctx context.Context, payload P) (R, error)) Handler {
	return func(ctx context.Context, job *Job) (any, error) {
		var payload P
		if err := job.Task.Decode(&payload); err != nil {
			return nil, Permanent(fmt.Errorf("the payload of %s is not valid: %w", job.Task.HandlerRef, err))
		}
		return run(ctx, payload)
	}
}

// HandleJob is Handle for a function that uses steps or reports progress.
func HandleJob[P, R any](run func(ctx context.Context, job *Job, payload P) (R, error)) Handler {
	return func(ctx context.Context, job *Job) (any, error) {
		return Handle(func(ctx context.Context, payload P) (R, error) { return run(ctx, job, payload) })(ctx, job)
	}
}

// WorkerOptions may be left out, each.
type WorkerOptions struct {
	// Concurrency is how many tasks run at the same time; 10 if absent.
	Concurrency int
	// Lease is how long the queue waits for a sign of life; 30 s if absent. It is extended by itself.
	Lease time.Duration
	// Name is shown in the list of workers; made up if absent.
	Name string
	// StopTimeout is how long handlers may go on after the end of Run's context; 30 s if absent.
	StopTimeout time.Duration
	// Labels of this worker: it gets tasks all of whose labels are among them.
	Labels []string
	// OnError gets errors that end no task: a lost connection, a lost lease. By default it logs.
	OnError func(error)
}

// Worker claims tasks of a pull queue and runs their handlers.
type Worker struct {
	queue    *Queue
	name     string
	handlers map[string]Handler
	options  WorkerOptions
	slots    chan struct{}
	results  chan settled
	mu       sync.Mutex
	running  map[*running]struct{}
}

const (
	claimWait          = 30 * time.Second
	watchAfter         = 500 * time.Millisecond
	watchWait          = 30 * time.Second
	maxPerClaim        = 100
	maxHandlersInClaim = 100
	maxSettle          = 100
	maxResultBytes     = 65_536
)

// NewWorker makes a worker of one queue; Run starts it.
func NewWorker(queue *Queue, name string, handlers map[string]Handler, options *WorkerOptions) (*Worker, error) {
	if len(handlers) == 0 {
		return nil, errors.New("millrace: a worker needs at least one handler")
	}
	w := &Worker{queue: queue, name: name, handlers: handlers, running: map[*running]struct{}{}}
	if options != nil {
		w.options = *options
	}
	if w.options.Concurrency <= 0 {
		w.options.Concurrency = 10
	}
	if w.options.Lease <= 0 {
		w.options.Lease = 30 * time.Second
	}
	if w.options.StopTimeout <= 0 {
		w.options.StopTimeout = 30 * time.Second
	}
	if w.options.Name == "" {
		w.options.Name = fmt.Sprintf("worker-%08x", rand.Uint32())
	}
	if w.options.OnError == nil {
		w.options.OnError = func(err error) { log.Printf("%s: %v", w.options.Name, err) }
	}
	w.slots = make(chan struct{}, w.options.Concurrency)
	w.results = make(chan settled, w.options.Concurrency)
	return w, nil
}

// Run works until the context ends, then waits for the handlers that run and returns. Handlers that
// do not end within StopTimeout are told to, and their tasks are handed back.
func (w *Worker) Run(ctx context.Context) error {
	var handlers, settling sync.WaitGroup
	settling.Add(1)
	go func() {
		defer settling.Done()
		w.settleAll()
	}()
	extending, stopExtending := context.WithCancel(context.Background())
	go w.extendAll(extending)
	w.claimAll(ctx, &handlers)
	timer := time.AfterFunc(w.options.StopTimeout, func() {
		for _, each := range w.list() {
			each.stop(ErrStopping)
		}
	})
	handlers.Wait()
	timer.Stop()
	stopExtending()
	close(w.results)
	settling.Wait()
	return nil
}

func (w *Worker) claimAll(ctx context.Context, handlers *sync.WaitGroup) {
	delay := firstRetry
	for ctx.Err() == nil {
		// One slot is waited for; the others that are free are taken with it.
		select {
		case w.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		taken := 1
		for taken < maxPerClaim && taken < w.options.Concurrency {
			select {
			case w.slots <- struct{}{}:
				taken++
				continue
			default:
			}
			break
		}
		started := time.Now()
		tasks, err := w.claim(ctx, taken)
		for range make([]struct{}, taken-len(tasks)) {
			<-w.slots
		}
		for _, task := range tasks {
			handlers.Add(1)
			go w.run(task, handlers)
		}
		// A server that shuts down does not wait.
		if len(tasks) > 0 || (err == nil && time.Since(started) > claimWait/2) {
			delay = firstRetry
			continue
		}
		if err != nil && ctx.Err() == nil {
			w.options.OnError(err)
		}
		if sleep(ctx, delay/2+time.Duration(rand.Int63n(int64(delay/2)))) != nil {
			return
		}
		if delay *= 2; delay > maxRetry {
			delay = maxRetry
		}
	}
}

type claimed struct {
	Task
	history
	LeaseToken string `json:"lease_token"`
}

func (w *Worker) claim(ctx context.Context, limit int) ([]*claimed, error) {
	body := fields{
		"worker": w.options.Name, "limit": limit,
		"wait_ms": claimWait.Milliseconds(), "lease_ms": w.options.Lease.Milliseconds(),
	}
	// Tasks without a handler here are left to other workers.
	if len(w.handlers) <= maxHandlersInClaim {
		refs := make([]string, 0, len(w.handlers))
		for ref := range w.handlers {
			refs = append(refs, ref)
		}
		body["handlers"] = refs
	}
	if len(w.options.Labels) > 0 {
		body["labels"] = w.options.Labels
	}
	var answer struct {
		Tasks []*claimed `json:"tasks"`
	}
	err := w.queue.api.call(ctx, request{method: "POST", path: join("/v1/queues/", w.name, "/tasks:claim"), body: body}, &answer)
	return answer.Tasks, err
}

func (w *Worker) run(task *claimed, handlers *sync.WaitGroup) {
	defer handlers.Done()
	defer func() { <-w.slots }()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	r := &running{worker: w, task: &task.Task, token: task.LeaseToken, cancel: cancel}
	r.leaseEnd = time.Now().Add(w.options.Lease)
	w.mu.Lock()
	w.running[r] = struct{}{}
	w.mu.Unlock()
	go r.watch(ctx)
	job := &Job{Task: r.task, running: r, steps: newSteps(task.history), dependencies: task.Dependencies}
	result, err := w.handle(ctx, job)
	w.mu.Lock()
	delete(w.running, r)
	w.mu.Unlock()
	if item := r.outcome(job.steps, result, err); item != nil {
		w.results <- settled{r, item}
	}
}

// handle turns a panic into an error: one bad task must not end the worker.
func (w *Worker) handle(ctx context.Context, job *Job) (result any, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = &panicked{value: thrown, stack: debug.Stack()}
		}
	}()
	handler, ok := w.handlers[job.Task.HandlerRef]
	if !ok {
		return nil, Permanent(fmt.Errorf("there is no handler for %s", job.Task.HandlerRef))
	}
	return handler(ctx, job)
}

type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func (w *Worker) list() []*running {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*running, 0, len(w.running))
	for each := range w.running {
		all = append(all, each)
	}
	return all
}

func (w *Worker) extendAll(ctx context.Context) {
	for sleep(ctx, w.options.Lease/3) == nil {
		for _, each := range w.list() {
			if each.ended() {
				continue
			}
			if err := each.extend(ctx, nil); err != nil && ctx.Err() == nil {
				w.options.OnError(err)
			}
		}
	}
}

type settled struct {
	running *running
	item    fields
}

// settleAll settles in batches: what ends while a call is under way goes into the next one.
func (w *Worker) settleAll() {
	for first := range w.results {
		batch := []settled{first}
		for more := true; more && len(batch) < maxSettle; {
			select {
			case next, ok := <-w.results:
				if more = ok; ok {
					batch = append(batch, next)
				}
			default:
				more = false
			}
		}
		w.settle(batch)
	}
}

func (w *Worker) settle(batch []settled) {
	ends := time.Time{}
	items := make([]fields, len(batch))
	for i, each := range batch {
		items[i] = each.item
		if end := each.running.end(); end.After(ends) {
			ends = end
		}
	}
	// Repeated until the leases end, which is harmless.
	ctx, cancel := context.WithDeadline(context.Background(), ends)
	defer cancel()
	path := join("/v1/queues/", w.name, "/tasks:settle")
	for ctx.Err() == nil {
		var answers []struct {
			Status int             `json:"status"`
			Error  json.RawMessage `json:"error"`
		}
		err := w.queue.api.call(ctx, request{method: "POST", path: path, body: fields{"items": items}}, &answers)
		for _, answer := range answers {
			if answer.Error != nil {
				w.options.OnError(refusal(answer.Status, answer.Error, 0))
			}
		}
		if err == nil {
			return
		}
		w.options.OnError(err)
		var refused *APIError
		if errors.As(err, &refused) && refused.Status < 500 && refused.Status != 429 {
			return
		}
		_ = sleep(ctx, firstRetry)
	}
}

// running is a claimed task while its handler runs.
type running struct {
	worker   *Worker
	task     *Task
	token    string
	cancel   context.CancelFunc
	mu       sync.Mutex
	leaseEnd time.Time
	cause    error
}

func (r *running) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cause != nil
}

func (r *running) end() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaseEnd
}

func (r *running) stop(cause error) {
	r.mu.Lock()
	if r.cause == nil {
		r.cause = cause
	}
	r.mu.Unlock()
	r.cancel()
}

// watch waits for the end of a task that runs for longer than most, which is a cancel.
func (r *running) watch(ctx context.Context) {
	for pause := watchAfter; sleep(ctx, pause) == nil && !r.ended(); pause = 0 {
		var task Task
		started := time.Now()
		err := r.worker.queue.api.call(ctx, request{
			method: "GET", path: join("/v1/tasks/", r.task.ID),
			query:  url.Values{"wait_ms": {strconv.FormatInt(watchWait.Milliseconds(), 10)}},
			header: map[string]string{"X-Queue-Lease-Token": r.token},
		}, &task)
		// A role that may only read tasks that it holds is refused when the lease is gone.
		if task.Status == "DEAD" || IsCode(err, "FORBIDDEN") || IsCode(err, "TASK_NOT_FOUND") {
			if err := r.extend(ctx, nil); err != nil && ctx.Err() == nil && !r.ended() {
				r.worker.options.OnError(err)
			}
			return
		}
		// A server that is away, draining or overloaded: the next extension of the lease finds out.
		if err != nil || time.Since(started) < watchWait/2 {
			return
		}
	}
}

func (r *running) extend(ctx context.Context, progress fields) error {
	lease := r.worker.options.Lease
	body := fields{"extend_ms": lease.Milliseconds()}
	if progress != nil {
		body["progress"] = progress
	}
	sentAt := time.Now()
	err := r.worker.queue.api.call(ctx, request{
		method: "POST", path: join("/v1/tasks/", r.task.ID, ":extend"), body: body,
		header: map[string]string{"X-Queue-Lease-Token": r.token},
	}, nil)
	var refused *APIError
	switch {
	case err == nil:
		r.mu.Lock()
		r.leaseEnd = sentAt.Add(lease)
		r.mu.Unlock()
	case errors.As(err, &refused) && refused.Reason == "CANCELLED":
		r.stop(ErrCancelled)
	case IsCode(err, "LEASE_LOST"), IsCode(err, "TASK_NOT_FOUND"):
		r.stop(ErrLeaseLost)
	}
	return err
}

// outcome is the settlement of the task; nil if the queue would not take it.
func (r *running) outcome(steps *steps, result any, err error) fields {
	r.mu.Lock()
	cause := r.cause
	r.mu.Unlock()
	if cause != nil && cause != ErrStopping {
		return nil
	}
	item := fields{"id": r.task.ID, "lease_token": r.token}
	if errors.Is(err, ErrSuspended) && cause == nil {
		item["outcome"], item["suspend"] = "suspend", steps.suspension()
		return item
	}
	if err == nil {
		encoded, problem := json.Marshal(result)
		switch {
		case problem != nil:
			err = Permanent(fmt.Errorf("the result cannot be written as JSON: %w", problem))
		case len(encoded) > maxResultBytes:
			err = Permanent(fmt.Errorf("the result has %d bytes; at most %d are kept", len(encoded), maxResultBytes))
		default:
			item["outcome"] = "complete"
			if result != nil {
				item["result"] = json.RawMessage(encoded)
			}
			return item
		}
	}
	item["outcome"] = "fail"
	item["error_type"] = errorType(err)
	item["message"] = cut(err.Error(), 1_024)
	var final *permanent
	var failed *StepError
	item["retry"] = !errors.As(err, &final) && !errors.As(err, &failed)
	var later *retryLater
	if errors.As(err, &later) {
		item["retry_after_ms"] = later.after.Milliseconds()
	}
	var panic *panicked
	if errors.As(err, &panic) {
		item["stack"] = cut(string(panic.stack), 2_048)
	}
	if cause == ErrStopping {
		// A handler that was cut off by a shutdown has not used up its attempt.
		item["defer"] = true
	}
	return item
}

var errorTypePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`)

// errorType is the name of the innermost type that is not one of errors and fmt.
func errorType(err error) string {
	name := ""
	for each := err; each != nil; each = errors.Unwrap(each) {
		kind := reflect.TypeOf(each)
		for kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		if each := kind.Name(); each != "" && each != "errorString" && each != "wrapError" {
			name = each
		}
	}
	switch {
	case name == "panicked":
		return "Panic"
	case name == "permanent":
		return "Permanent"
	case name == "retryLater":
		return "RetryLater"
	case errorTypePattern.MatchString(name):
		return name
	}
	return "Error"
}

func cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && text[bytes]&0xC0 == 0x80 {
		bytes--
	}
	return text[:bytes]
}
