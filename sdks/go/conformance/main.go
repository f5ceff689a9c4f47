// The runner of the scenarios in sdks/conformance; see the README there.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"syscall"
	"time"

	millrace "millrace.dev/go"
)

type scenario struct {
	Name   string         `json:"name"`
	Config map[string]any `json:"config"`
	Tasks  []struct {
		Ref     string         `json:"ref"`
		Payload any            `json:"payload"`
		Options map[string]any `json:"options"`
	} `json:"tasks"`
	Many *struct {
		Ref   string `json:"ref"`
		Count int    `json:"count"`
	} `json:"many"`
	LeaseMs          int    `json:"lease_ms"`
	Then             string `json:"then"`
	ExpectAfterCrash any    `json:"expect_after_crash"`
}

type outcome struct {
	Status     millrace.Status `json:"status"`
	Result     json.RawMessage `json:"result"`
	Attempt    int             `json:"attempt"`
	ErrorType  *string         `json:"error_type"`
	DeadReason *string         `json:"dead_reason"`
}

// Flaky is an error whose name the queue records.
type Flaky struct{}

func (*Flaky) Error() string { return "not yet" }

var (
	ctx     = context.Background()
	started = make(chan string, 1)
)

func handlers() map[string]millrace.Handler {
	type call = func(context.Context, *millrace.Job) (any, error)
	each := map[string]call{
		"echo": func(_ context.Context, job *millrace.Job) (any, error) {
			return json.RawMessage(job.Task.Payload), nil
		},
		"nothing": func(context.Context, *millrace.Job) (any, error) { return nil, nil },
		"flaky": func(_ context.Context, job *millrace.Job) (any, error) {
			var payload struct{ Failures int }
			if err := job.Task.Decode(&payload); err != nil {
				return nil, err
			}
			if job.Task.Attempt <= payload.Failures {
				return nil, &Flaky{}
			}
			return map[string]int{"attempt": job.Task.Attempt}, nil
		},
		"later": func(_ context.Context, job *millrace.Job) (any, error) {
			if job.Task.Attempt == 1 {
				return nil, millrace.RetryLater(50*time.Millisecond, errors.New("later"))
			}
			return "done", nil
		},
		"permanent": func(_ context.Context, job *millrace.Job) (any, error) {
			var payload struct{ Message string }
			if err := job.Task.Decode(&payload); err != nil {
				return nil, err
			}
			return nil, millrace.Permanent(errors.New(payload.Message))
		},
		"large": func(context.Context, *millrace.Job) (any, error) { return strings.Repeat("x", 70_000), nil },
		"slow": func(ctx context.Context, job *millrace.Job) (any, error) {
			var payload struct{ MS int }
			if err := job.Task.Decode(&payload); err != nil {
				return nil, err
			}
			if err := job.Progress(ctx, 50, "half"); err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(payload.MS) * time.Millisecond)
			return job.Task.Attempt, nil
		},
		"wait": func(ctx context.Context, job *millrace.Job) (any, error) {
			started <- job.Task.ID
			select {
			case <-ctx.Done():
				return nil, job.Cause()
			case <-time.After(30 * time.Second):
				return nil, nil
			}
		},
		"crash": func(_ context.Context, job *millrace.Job) (any, error) {
			if job.Task.Attempt == 1 {
				return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return "recovered", nil
		},
	}
	all := flowHandlers()
	for name, run := range each {
		all[name] = millrace.Handler(run)
	}
	return all
}

var tries int

// flowHandlers use steps.
func flowHandlers() map[string]millrace.Handler {
	return map[string]millrace.Handler{
		"flow": millrace.HandleJob(flow),
		"undo": func(ctx context.Context, job *millrace.Job) (any, error) {
			message := map[string]string{"message": "no"}
			err := job.Submit(ctx, "child", job.Task.Queue, "permanent", message, nil, nil)
			var failed *millrace.StepError
			if errors.As(err, &failed) {
				return failed.Type, nil
			}
			return "done", err
		},
		"twice": func(ctx context.Context, job *millrace.Job) (any, error) {
			for i := 0; i < 2; i++ {
				if _, err := millrace.Step(ctx, job, "a", func(context.Context) (int, error) { return 1, nil }, nil); err != nil {
					return nil, err
				}
			}
			return nil, nil
		},
		"crash-flow": func(ctx context.Context, job *millrace.Job) (any, error) {
			attempt := func(context.Context) (int, error) { return job.Task.Attempt, nil }
			first, err := millrace.Step(ctx, job, "first", attempt, nil)
			if err != nil {
				return nil, err
			}
			if job.Task.Attempt == 1 {
				return nil, syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			second, err := millrace.Step(ctx, job, "second", attempt, nil)
			return map[string]int{"first": first, "second": second}, err
		},
	}
}

type flowResult struct {
	Doubled  int            `json:"doubled"`
	Signal   map[string]any `json:"signal"`
	Late     any            `json:"late"`
	Child    int            `json:"child"`
	Children []int          `json:"children"`
	Tries    int            `json:"tries"`
}

func flow(ctx context.Context, job *millrace.Job, payload int) (result flowResult, err error) {
	result.Doubled, err = millrace.Step(ctx, job, "double", func(context.Context) (int, error) { return payload * 2, nil }, nil)
	if err != nil {
		return
	}
	if err = job.Sleep(ctx, "nap", 50*time.Millisecond); err != nil {
		return
	}
	if _, err = job.Signal(ctx, "go", 0, &result.Signal); err != nil {
		return
	}
	if _, err = job.Signal(ctx, "never", 50*time.Millisecond, &result.Late); err != nil {
		return
	}
	if err = job.Submit(ctx, "child", job.Task.Queue, "echo", payload+21, nil, &result.Child); err != nil {
		return
	}
	if err = job.SubmitMany(ctx, "children", job.Task.Queue, "echo", []any{1, 2, 3}, nil, &result.Children); err != nil {
		return
	}
	result.Tries, err = millrace.Step(ctx, job, "flaky", func(context.Context) (int, error) {
		if tries++; tries == 1 {
			return 0, &Flaky{}
		}
		return tries, nil
	}, &millrace.StepOptions{Backoff: 10 * time.Millisecond})
	return
}

func main() {
	log.SetFlags(0)
	queue := must(millrace.NewQueue(millrace.Options{URL: os.Getenv("MILLRACE_URL"), Token: os.Getenv("MILLRACE_TOKEN")}))
	var scenarios []scenario
	check(json.Unmarshal(must(os.ReadFile(os.Args[1])), &scenarios))
	only := os.Getenv("MILLRACE_ONLY")
	for _, each := range scenarios {
		if (only != "" && each.Name != only) || (only == "" && each.ExpectAfterCrash != nil) {
			continue
		}
		name := os.Getenv("MILLRACE_PREFIX") + "-" + each.Name
		if os.Getenv("MILLRACE_RESUME") != "" {
			resume(queue, name, each)
			continue
		}
		run(queue, name, each)
	}
}

func work(queue *millrace.Queue, name string, s scenario) (stop func()) {
	lease := 30 * time.Second
	if s.LeaseMs > 0 {
		lease = time.Duration(s.LeaseMs) * time.Millisecond
	}
	options := &millrace.WorkerOptions{Lease: lease, OnError: func(error) {}}
	worker := must(millrace.NewWorker(queue, name, handlers(), options))
	working, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(worker.Run(working))
	}()
	return func() {
		cancel()
		<-done
	}
}

func run(queue *millrace.Queue, name string, s scenario) {
	config := map[string]any{"callback": map[string]string{"protocol": "pull"}}
	for key, value := range s.Config {
		config[key] = value
	}
	check(queue.Configure(ctx, name, config))
	stop := work(queue, name, s)
	ids := submit(queue, name, s)
	if s.Then == "cancel" {
		check(queue.Cancel(ctx, <-started, ""))
	}
	if s.Then == "signal" {
		check(queue.Signal(ctx, ids[0], "go", map[string]string{"by": "ada"}, ""))
	}
	outcomes := make([]outcome, len(ids))
	for i, id := range ids {
		task, err := queue.Wait(ctx, id)
		var failed *millrace.TaskError
		if err != nil && !errors.As(err, &failed) {
			check(err)
		}
		outcomes[i] = outcome{Status: task.Status, Result: task.Result, Attempt: task.Attempt}
		if task.LastError != nil {
			outcomes[i].ErrorType = &task.LastError.Type
		}
		if task.DeadReason != "" {
			outcomes[i].DeadReason = &task.DeadReason
		}
	}
	stop()
	fmt.Println(string(must(json.Marshal(map[string]any{"name": s.Name, "tasks": outcomes}))))
}

func submit(queue *millrace.Queue, name string, s scenario) (ids []string) {
	if s.Many != nil {
		payloads := make([]any, s.Many.Count)
		for i := range payloads {
			payloads[i] = i
		}
		for _, result := range must(queue.SubmitMany(ctx, name, s.Many.Ref, payloads, nil)) {
			check(result.Err)
			ids = append(ids, result.Task.ID)
		}
		return ids
	}
	for _, task := range s.Tasks {
		options := &millrace.SubmitOptions{}
		if delay, ok := task.Options["delay_ms"].(float64); ok {
			options.Delay = time.Duration(delay) * time.Millisecond
		}
		if priority, ok := task.Options["priority"].(float64); ok {
			whole := int(priority)
			options.Priority = &whole
		}
		options.GroupKey, _ = task.Options["group_key"].(string)
		options.UniqueKey, _ = task.Options["unique_key"].(string)
		ids = append(ids, must(queue.Submit(ctx, name, task.Ref, task.Payload, options)).ID)
	}
	return ids
}

func resume(queue *millrace.Queue, name string, s scenario) {
	stop := work(queue, name, s)
	defer stop()
	for {
		stats := must(queue.Stats(ctx, name))
		if stats.Pending+stats.InFlight == 0 {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
