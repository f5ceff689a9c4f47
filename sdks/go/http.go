package millrace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// Options say where a server is and who calls.
type Options struct {
	// URL is the address of the server, such as http://127.0.0.1:8081.
	URL string
	// URLs are several addresses of one service; the next is used when one is away.
	URLs []string
	// Token is the bearer token.
	Token string
	// HTTPClient replaces http.DefaultClient, for TLS settings and the like.
	HTTPClient *http.Client
}

const (
	maxTries   = 6
	firstRetry = 100 * time.Millisecond
	maxRetry   = 5 * time.Second
	// maxAnswer bounds what is read of one answer.
	maxAnswer = 256 << 20
)

type api struct {
	urls   []string
	token  string
	client *http.Client
	// current counts the changes from one address to the next.
	current atomic.Int64
}

func newAPI(options Options) (*api, error) {
	urls := options.URLs
	if options.URL != "" {
		urls = append([]string{options.URL}, urls...)
	}
	if len(urls) == 0 {
		return nil, errors.New("millrace: give the URL of a server, such as http://127.0.0.1:8081")
	}
	a := &api{token: options.Token, client: options.HTTPClient}
	if a.client == nil {
		a.client = http.DefaultClient
	}
	for _, each := range urls {
		parsed, err := url.Parse(each)
		if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "" {
			return nil, fmt.Errorf("millrace: %q is no address such as http://127.0.0.1:8081", each)
		}
		a.urls = append(a.urls, strings.TrimRight(each, "/"))
	}
	return a, nil
}

type request struct {
	method string
	path   string
	query  url.Values
	body   any
	header map[string]string
	// once: it must not be repeated when it may have been done already.
	once bool
}

// call sends a request and decodes the body of a success into answer, which may be nil.
func (a *api) call(ctx context.Context, r request, answer any) error {
	delay := firstRetry
	for try := 1; ; try++ {
		used := a.current.Load()
		err := a.try(ctx, used, r, answer)
		if err == nil || ctx.Err() != nil {
			return err
		}
		var least time.Duration
		var refused *APIError
		if errors.As(err, &refused) {
			if refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusServiceUnavailable {
				return err
			}
			least = refused.RetryAfter
		} else {
			a.current.CompareAndSwap(used, used+1)
			if r.once {
				return err
			}
		}
		if try == maxTries {
			return err
		}
		pause := delay/2 + time.Duration(rand.Int63n(int64(delay/2)))
		if pause < least {
			pause = least
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		if delay *= 2; delay > maxRetry {
			delay = maxRetry
		}
	}
}

func (a *api) try(ctx context.Context, used int64, r request, answer any) error {
	response, err := a.send(ctx, used, r, "application/json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("millrace: the connection broke: %w", err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return refusal(response.StatusCode, body, time.Duration(seconds)*time.Second)
	}
	if answer == nil || len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("millrace: the answer is not what was expected: %w", err)
	}
	return nil
}

func (a *api) send(ctx context.Context, used int64, r request, accept string) (*http.Response, error) {
	var body io.Reader
	if r.body != nil {
		encoded, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("millrace: cannot be written as JSON: %w", err)
		}
		body = bytes.NewReader(encoded)
	}
	target := a.urls[int(used)%len(a.urls)] + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	sent, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, err
	}
	sent.Header.Set("Accept", accept)
	if body != nil {
		sent.Header.Set("Content-Type", "application/json")
	}
	if a.token != "" {
		sent.Header.Set("Authorization", "Bearer "+a.token)
	}
	for name, value := range r.header {
		sent.Header.Set(name, value)
	}
	return a.client.Do(sent)
}

func sleep(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func join(parts ...string) string {
	for i, part := range parts {
		if i%2 == 1 {
			parts[i] = url.PathEscape(part)
		}
	}
	return strings.Join(parts, "")
}
