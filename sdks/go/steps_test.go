package millrace

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestStepsAreRunOnce(t *testing.T) {
	queue, ctx := openQueue(t, "go-flows")
	ran := 0
	once := func(context.Context) (string, error) { ran++; return "charged", nil }
	type result struct {
		Charge, By  string
		Left, Right int
		Many        []int
		At          time.Time
		ID          string
		Number      float64
	}
	stop := startWorker(t, queue, "go-flows", map[string]Handler{
		"double": Handle(func(_ context.Context, n int) (int, error) { return n * 2, nil }),
		"order": HandleJob(func(ctx context.Context, job *Job, name string) (r result, err error) {
			if r.Charge, err = Step(ctx, job, "charge", once, nil); err != nil {
				return
			}
			var answer struct{ By string }
			if _, err = job.Signal(ctx, "approved", time.Minute, &answer); err != nil {
				return
			}
			r.By = answer.By
			err = job.Parallel(ctx,
				func(ctx context.Context) error {
					return job.Submit(ctx, "left", "go-flows", "double", 1, nil, &r.Left)
				},
				func(ctx context.Context) error {
					return job.Submit(ctx, "right", "go-flows", "double", 2, nil, &r.Right)
				},
				func(ctx context.Context) error {
					return job.SubmitMany(ctx, "many", "go-flows", "double", []any{3, 4}, nil, &r.Many)
				})
			if err != nil {
				return
			}
			if r.At, err = job.Now(ctx); err != nil {
				return
			}
			if r.ID, err = job.NewID(ctx); err != nil {
				return
			}
			if r.Number, err = job.Random(ctx); err != nil {
				return
			}
			return r, job.Sleep(ctx, "end", 20*time.Millisecond)
		}),
	}, nil)
	defer stop()
	task := must(queue.Submit(ctx, "go-flows", "order", "x", &SubmitOptions{UniqueKey: "order-1"}))
	for range make([]struct{}, 2) {
		check(t, queue.SignalKey(ctx, "go-flows", "order-1", "approved", map[string]string{"by": "ada"}, "one"))
	}
	ended := must(queue.Wait(ctx, task.ID))
	var r result
	check(t, (&Record{Data: ended.Result}).Decode(&r))
	if ran != 1 || r.Charge != "charged" || r.By != "ada" || r.Left+r.Right != 6 || len(r.Many) != 2 || r.Many[1] != 8 {
		t.Fatal(ran, r)
	}
	if ended.Attempt != 1 || len(r.ID) != 36 || time.Since(r.At) > time.Hour {
		t.Fatal(ended.Attempt, r)
	}
	if tree := must(queue.Tree(ctx, task.ID)); len(tree.Children) != 4 || tree.Steps[0] != "charge" {
		t.Fatal(tree)
	}
}

func TestEndedChildrenDoNotWakeTheTaskAgainAndAgain(t *testing.T) {
	queue, ctx := openQueue(t, "go-waits")
	runs := 0
	stop := startWorker(t, queue, "go-waits", map[string]Handler{
		"nap": Handle(func(_ context.Context, ms int) (int, error) {
			time.Sleep(time.Duration(ms) * time.Millisecond)
			return ms, nil
		}),
		"order": HandleJob(func(ctx context.Context, job *Job, _ string) (many []int, err error) {
			runs++
			err = job.Parallel(ctx,
				func(ctx context.Context) error {
					return job.SubmitMany(ctx, "many", "go-waits", "nap", []any{0, 800, 0}, nil, &many)
				},
				func(ctx context.Context) error { return job.Sleep(ctx, "rest", 500*time.Millisecond) })
			return
		}),
	}, nil)
	defer stop()
	var many []int
	check(t, queue.SubmitAndWait(ctx, "go-waits", "order", "x", nil, &many))
	if len(many) != 3 || many[1] != 800 || runs >= 10 {
		t.Fatal(many, runs)
	}
}

func TestStepsFailAndAreUndone(t *testing.T) {
	queue, ctx := openQueue(t, "go-undo")
	tries := 0
	stop := startWorker(t, queue, "go-undo", map[string]Handler{
		"flaky": func(ctx context.Context, job *Job) (any, error) {
			return Step(ctx, job, "f", func(context.Context) (int, error) {
				if tries++; tries < 3 {
					return 0, errors.New("not yet")
				}
				return tries, nil
			}, &StepOptions{Backoff: 10 * time.Millisecond})
		},
		"broken": func(ctx context.Context, job *Job) (any, error) {
			return Step(ctx, job, "f", func(context.Context) (int, error) { return 0, errors.New("no card") }, &StepOptions{Attempts: 1})
		},
	}, nil)
	defer stop()
	var tried int
	check(t, queue.SubmitAndWait(ctx, "go-undo", "flaky", nil, nil, &tried))
	if tried != 3 {
		t.Fatal(tried)
	}
	var failed *TaskError
	if err := queue.SubmitAndWait(ctx, "go-undo", "broken", nil, nil, nil); !errors.As(err, &failed) || failed.Type != "StepError" {
		t.Fatal(err)
	}
}

func TestFlowsOfTasks(t *testing.T) {
	queue, ctx := openQueue(t, "go-graph")
	stop := startWorker(t, queue, "go-graph", map[string]Handler{
		"add": HandleJob(func(_ context.Context, job *Job, n int) (int, error) {
			for _, each := range job.Dependencies() {
				var value int
				if err := (&Record{Data: each.Result}).Decode(&value); err != nil {
					return 0, err
				}
				n += value
			}
			return n, nil
		}),
	}, nil)
	defer stop()
	ids := must(queue.SubmitFlow(ctx, []FlowTask{
		{Key: "c", Queue: "go-graph", Ref: "add", Payload: 100, Options: &SubmitOptions{DependsOn: []string{"a", "b"}}},
		{Key: "a", Queue: "go-graph", Ref: "add", Payload: 1},
		{Key: "b", Queue: "go-graph", Ref: "add", Payload: 10},
	}))
	if ended := must(queue.Wait(ctx, ids["c"])); string(ended.Result) != "111" {
		t.Fatal(string(ended.Result))
	}
}
