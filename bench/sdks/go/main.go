// Works off a queue with the Go SDK; see bench/sdks.mjs.
package main

import (
	"context"
	"log"
	"os"
	"strconv"
	"sync/atomic"

	millrace "millrace.dev/go"
)

func main() {
	queue, err := millrace.NewQueue(millrace.Options{URL: os.Getenv("MILLRACE_URL"), Token: os.Getenv("MILLRACE_TOKEN")})
	if err != nil {
		log.Fatal(err)
	}
	name := os.Getenv("BENCH_QUEUE")
	count, err := strconv.ParseInt(os.Getenv("BENCH_COUNT"), 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if os.Args[1] == "submit" {
		payloads := make([]any, count)
		for i := range payloads {
			payloads[i] = i
		}
		if _, err := queue.SubmitMany(ctx, name, "add", payloads, nil); err != nil {
			log.Fatal(err)
		}
		return
	}
	var done atomic.Int64
	add := millrace.Handle(func(_ context.Context, n int) (int, error) {
		if done.Add(1) == count {
			cancel()
		}
		return n + 1, nil
	})
	worker, err := millrace.NewWorker(queue, name, map[string]millrace.Handler{"add": add}, &millrace.WorkerOptions{Concurrency: 32})
	if err != nil {
		log.Fatal(err)
	}
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}
