package millrace

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// APIError is a refusal of a server.
type APIError struct {
	// Status is the HTTP status.
	Status int
	// Code is for programs, such as QUEUE_NOT_FOUND.
	Code string
	// Reason says more than the code, for some codes.
	Reason string
	// Detail is for people.
	Detail string
	// RetryAfter is what the server asks for; 0 if nothing.
	RetryAfter time.Duration
}

func (e *APIError) Error() string { return e.Code + ": " + e.Detail }

// IsCode tells whether an error is a refusal with this code.
func IsCode(err error, code string) bool {
	var refused *APIError
	return errors.As(err, &refused) && refused.Code == code
}

// TaskError says that a task that was waited for is dead.
type TaskError struct {
	TaskID string
	// Type is that of the last failure, such as HTTP_5XX; empty if there was none.
	Type    string
	Message string
}

func (e *TaskError) Error() string {
	return fmt.Sprintf("the task %s failed: %s", e.TaskID, e.Message)
}

var (
	// ErrCancelled is the cause of a context of a handler whose task was cancelled.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrLeaseLost is the cause of a context of a handler whose result will not be taken.
	ErrLeaseLost = errors.New("the lease of the task is lost")
	// ErrStopping is the cause of a context of a handler whose worker stops.
	ErrStopping = errors.New("the worker stops")
)

type retryLater struct {
	after time.Duration
	cause error
}

func (e *retryLater) Error() string { return e.cause.Error() }
func (e *retryLater) Unwrap() error { return e.cause }

// RetryLater makes the error of a handler ask for the next attempt no sooner than after this time,
// at most an hour.
func RetryLater(after time.Duration, cause error) error {
	return &retryLater{after: after, cause: cause}
}

type permanent struct{ cause error }

func (e *permanent) Error() string { return e.cause.Error() }
func (e *permanent) Unwrap() error { return e.cause }

// Permanent makes the error of a handler final: the task goes to the dead-letter queue.
func Permanent(cause error) error { return &permanent{cause: cause} }

// refusal reads the problem of the queue or the google.rpc.Status of the database.
func refusal(status int, body []byte, retryAfter time.Duration) *APIError {
	var problem struct {
		Code    json.RawMessage `json:"code"`
		Reason  string          `json:"reason"`
		Detail  string          `json:"detail"`
		Message string          `json:"message"`
		Details []struct {
			Reason string `json:"reason"`
		} `json:"details"`
	}
	refused := &APIError{Status: status, Code: "UNKNOWN", RetryAfter: retryAfter}
	if json.Unmarshal(body, &problem) != nil {
		refused.Detail = fmt.Sprintf("status %d", status)
		return refused
	}
	refused.Detail, refused.Reason = problem.Detail, problem.Reason
	if refused.Detail == "" {
		refused.Detail = problem.Message
	}
	var code string
	if json.Unmarshal(problem.Code, &code) == nil && code != "" {
		refused.Code = code
	}
	for _, detail := range problem.Details {
		if detail.Reason != "" {
			refused.Code, refused.Reason = detail.Reason, detail.Reason
			break
		}
	}
	return refused
}
