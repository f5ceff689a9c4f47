package millrace_test

import (
	"context"
	"fmt"
	"log"

	millrace "millrace.dev/go"
)

func Example() {
	queue, err := millrace.NewQueue(millrace.Options{URL: "http://127.0.0.1:8081", Token: "..."})
	if err != nil {
		log.Fatal(err)
	}
	send := millrace.Handle(func(ctx context.Context, mail struct{ To string }) (string, error) {
		return "sent to " + mail.To, nil
	})
	worker, err := millrace.NewWorker(queue, "mail", map[string]millrace.Handler{"mail.send": send}, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go worker.Run(ctx)
	var result string
	err = queue.SubmitAndWait(ctx, "mail", "mail.send", map[string]string{"to": "ada@example.com"}, nil, &result)
	fmt.Println(result, err)
}
