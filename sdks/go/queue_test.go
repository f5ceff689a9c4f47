package millrace

import (
	"context"
	"errors"
	"testing"
	"time"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openQueue(t *testing.T, name string) (*Queue, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	queue := must(NewQueue(queueOptions))
	config := map[string]any{
		"callback": map[string]any{"protocol": "pull"},
		"retry":    map[string]any{"max_attempts": 3, "initial_backoff_ms": 100},
	}
	check(t, queue.Configure(ctx, name, config))
	return queue, ctx
}

func startWorker(t *testing.T, queue *Queue, name string, handlers map[string]Handler, options *WorkerOptions) (stop func()) {
	t.Helper()
	worker := must(NewWorker(queue, name, handlers, options))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = worker.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

func TestSubmitAndRead(t *testing.T) {
	queue, ctx := openQueue(t, "go-submit")
	priority := 7
	task := must(queue.Submit(ctx, "go-submit", "mail.send", map[string]any{"to": "Grüße"}, &SubmitOptions{Delay: time.Hour, Priority: &priority}))
	var payload struct{ To string }
	read := must(queue.Get(ctx, task.ID))
	check(t, read.Decode(&payload))
	if payload.To != "Grüße" || read.Priority != 7 || read.Status != Pending {
		t.Fatalf("%+v %+v", payload, read)
	}
	check(t, queue.Cancel(ctx, task.ID, "not needed"))
	if read := must(queue.Get(ctx, task.ID)); read.DeadReason != "CANCELLED" {
		t.Fatal(read.DeadReason)
	}
}

func TestSubmitMany(t *testing.T) {
	queue, ctx := openQueue(t, "go-many")
	payloads := make([]any, 1201)
	for i := range payloads {
		payloads[i] = i
	}
	results := must(queue.SubmitMany(ctx, "go-many", "many", payloads, &SubmitOptions{Delay: time.Hour}))
	seen := map[string]bool{}
	for _, each := range results {
		check(t, each.Err)
		seen[each.Task.ID] = true
	}
	count := 0
	check(t, queue.Each(ctx, "go-many", Filter{Statuses: []Status{Pending}, HandlerRef: "many"}, func(*Task) error {
		count++
		return nil
	}))
	if len(seen) != 1201 || count != 1201 {
		t.Fatal(len(seen), count)
	}
	refused := must(queue.SubmitMany(ctx, "go-many", "", []any{1}, nil))
	if refused[0].Err == nil {
		t.Fatal("an empty handler was taken")
	}
}

func TestRefusals(t *testing.T) {
	queue, ctx := openQueue(t, "go-refusals")
	if _, err := queue.Submit(ctx, "nowhere", "x", nil, nil); !IsCode(err, "QUEUE_NOT_FOUND") {
		t.Fatal(err)
	}
	if _, err := queue.Redrive(ctx, "go-refusals", DeadSelector{}); err == nil {
		t.Fatal("an empty selector was taken")
	}
	if _, err := NewQueue(Options{URL: "127.0.0.1:1"}); err == nil {
		t.Fatal("an address without a scheme was taken")
	}
	if _, err := NewWorker(queue, "go-refusals", nil, nil); err == nil {
		t.Fatal("a worker without handlers was taken")
	}
	two := must(NewQueue(Options{URLs: []string{"http://127.0.0.1:9", queueOptions.URL}, Token: queueOptions.Token}))
	must(two.Stats(ctx, "go-refusals"))
}

func TestResultsRetriesAndDeadTasks(t *testing.T) {
	queue, ctx := openQueue(t, "go-work")
	handlers := map[string]Handler{
		"add": Handle(func(_ context.Context, n int) (int, error) { return n + 1, nil }),
		"flaky": func(_ context.Context, job *Job) (any, error) {
			if job.Task.Attempt < 3 {
				return nil, RetryLater(10*time.Millisecond, errors.New("not yet"))
			}
			return "at last", nil
		},
		"broken": func(context.Context, *Job) (any, error) { return nil, Permanent(errors.New("no such address")) },
		"panics": func(context.Context, *Job) (any, error) { panic("oh") },
	}
	stop := startWorker(t, queue, "go-work", handlers, nil)
	defer stop()
	var sum int
	check(t, queue.SubmitAndWait(ctx, "go-work", "add", 41, nil, &sum))
	var text string
	check(t, queue.SubmitAndWait(ctx, "go-work", "flaky", nil, nil, &text))
	if sum != 42 || text != "at last" {
		t.Fatal(sum, text)
	}
	var failed *TaskError
	err := queue.SubmitAndWait(ctx, "go-work", "broken", nil, nil, nil)
	if !errors.As(err, &failed) || failed.Type != "Permanent" {
		t.Fatal(err)
	}
	err = queue.SubmitAndWait(ctx, "go-work", "panics", nil, nil, nil)
	if !errors.As(err, &failed) || failed.Type != "Panic" {
		t.Fatal(err)
	}
	var dead []string
	check(t, queue.EachDead(ctx, "go-work", Filter{HandlerRef: "broken"}, func(task *Task) error {
		dead = append(dead, task.ID)
		return nil
	}))
	if count := must(queue.Redrive(ctx, "go-work", DeadSelector{IDs: dead})); count != 1 {
		t.Fatal(count)
	}
}

func TestCancelAndLease(t *testing.T) {
	queue, ctx := openQueue(t, "go-lease")
	started, ended := make(chan string, 1), make(chan error, 1)
	stop := startWorker(t, queue, "go-lease", map[string]Handler{
		"slow": func(ctx context.Context, job *Job) (any, error) {
			started <- job.Task.ID
			<-ctx.Done()
			ended <- job.Cause()
			return nil, ctx.Err()
		},
		// The lease is not extended before the test ends.
	}, &WorkerOptions{Lease: 10 * time.Minute})
	defer stop()
	stopLong := startWorker(t, queue, "go-lease", map[string]Handler{
		"long": func(ctx context.Context, job *Job) (any, error) {
			if err := job.Progress(ctx, 50, "half"); err != nil {
				return nil, err
			}
			return job.Task.Attempt, sleep(ctx, 3*time.Second)
		},
	}, &WorkerOptions{Lease: time.Second})
	defer stopLong()
	must(queue.Submit(ctx, "go-lease", "slow", nil, nil))
	check(t, queue.Cancel(ctx, <-started, ""))
	if cause := <-ended; cause != ErrCancelled {
		t.Fatal(cause)
	}
	var attempt int
	check(t, queue.SubmitAndWait(ctx, "go-lease", "long", nil, nil, &attempt))
	if attempt != 1 {
		t.Fatal(attempt)
	}
}

func TestStop(t *testing.T) {
	queue, ctx := openQueue(t, "go-stop")
	started := make(chan struct{}, 1)
	handlers := map[string]Handler{
		"patient": func(ctx context.Context, _ *Job) (any, error) {
			started <- struct{}{}
			return "done", sleep(ctx, 300*time.Millisecond)
		},
		"stubborn": func(ctx context.Context, _ *Job) (any, error) {
			started <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	stop := startWorker(t, queue, "go-stop", handlers, nil)
	patient := must(queue.Submit(ctx, "go-stop", "patient", nil, nil))
	<-started
	stop()
	if task := must(queue.Get(ctx, patient.ID)); task.Status != Succeeded {
		t.Fatal(task.Status)
	}
	stop = startWorker(t, queue, "go-stop", handlers, &WorkerOptions{StopTimeout: 50 * time.Millisecond})
	stubborn := must(queue.Submit(ctx, "go-stop", "stubborn", nil, nil))
	<-started
	stop()
	if task := must(queue.Get(ctx, stubborn.ID)); task.Status != Pending {
		t.Fatal(task.Status)
	}
}

func TestSchedules(t *testing.T) {
	queue, ctx := openQueue(t, "go-schedules")
	schedule := Schedule{Cron: "0 3 * * *", Timezone: "UTC", Ref: "report", Payload: map[string]int{"n": 1}}
	check(t, queue.PutSchedule(ctx, "go-schedules", "nightly", schedule))
	check(t, queue.DeleteSchedule(ctx, "go-schedules", "nightly"))
	if err := queue.DeleteSchedule(ctx, "go-schedules", "nightly"); err == nil {
		t.Fatal("deleted twice")
	}
}

func TestULIDsSortByTime(t *testing.T) {
	first := NewULID()
	time.Sleep(2 * time.Millisecond)
	if second := NewULID(); len(first) != 26 || second <= first {
		t.Fatal(first, second)
	}
}
