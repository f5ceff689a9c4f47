package millrace

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The servers, started once for all tests by `millrace up` on ports of their own.
var (
	queueOptions    Options
	databaseOptions Options
)

func TestMain(m *testing.M) {
	code, err := withServers(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withServers(run func() int) (int, error) {
	data, err := os.MkdirTemp("", "mr-go-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(data)
	ctl := os.Getenv("MILLRACE_CTL")
	if ctl == "" {
		ctl = "../../bin/ctl"
	}
	args := []string{ctl, "up", "--json", "--data", data}
	for _, name := range []string{"listen", "queue-listen", "queue-grpc", "metrics-listen", "db-grpc", "db-http"} {
		args = append(args, "--"+name, "127.0.0.1:0")
	}
	process := exec.Command("node", args...)
	process.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + data, "MILLRACE_LOG=error"}
	output, err := process.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := process.Start(); err != nil {
		return 1, err
	}
	defer process.Wait()
	defer process.Process.Signal(syscall.SIGTERM)
	urls := map[string]string{}
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var event struct{ Event, Component, Listener, URL string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return 1, err
		}
		if event.Listener == "http" {
			urls[event.Component] = event.URL
		}
		if event.Event == "ready" {
			break
		}
	}
	queueOptions = Options{URL: urls["queue"], Token: read(data, "queue.token")}
	databaseOptions = Options{URL: urls["db"], Token: read(data, "db/db.key")}
	return run(), nil
}

func read(data, name string) string {
	text, err := os.ReadFile(filepath.Join(data, name))
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(text))
}
