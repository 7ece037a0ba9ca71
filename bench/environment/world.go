package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/bench/door"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// world is a new worker with everything that it talks to. Its CLI is the real one.
type world struct {
	dir    string // short-lived; the worker's state is below it
	github *githubfake.Server
	model  *modelfake.Server
	worker *door.Server
	called chan struct{} // gets a value when the model is called
}

// newWorld starts a worker for a project. It must be stopped even after an error.
func (b *bench) newWorld(ctx context.Context, p stranger, c *corp) (w *world, err error) {
	w = &world{model: modelfake.New(), called: make(chan struct{}, 100)}
	if w.dir, err = os.MkdirTemp(b.dir, "w"); err != nil {
		return w, fmt.Errorf("create directory: %w", err)
	}
	if w.github, err = githubfake.New(githubfake.Config{Dir: filepath.Join(w.dir, "git")}); err != nil {
		return w, fmt.Errorf("start the fake GitHub: %w", err)
	}
	if err := p.create(w.github); err != nil {
		return w, err
	}
	// The environment of all processes of the run follows the output of the tests.
	line := p.test + ` 2>&1 && cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | sort -u`
	w.model.Answer("", modelfake.Turn{Text: "Hello.", Started: w.called})
	w.model.Answer("run the tests", modelfake.Turn{
		Started: w.called, Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]any{"command": line, "timeout": 600_000},
		}},
	}, modelfake.Turn{Text: "They ran."})
	settings, err := json.Marshal(p.settings(c)) // JSON is YAML
	if err != nil {
		return w, fmt.Errorf("encode errand.yaml: %w", err)
	}
	config := filepath.Join(w.dir, "errand.yaml")
	hosts, trust := filepath.Join(w.dir, "hosts"), filepath.Join(w.dir, "trust.pem")
	for path, content := range map[string][]byte{config: settings, hosts: c.hosts, trust: c.trusted} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return w, fmt.Errorf("configure the worker: %w", err)
		}
	}
	cli, err := agent.Find("", os.Getenv("PATH"))
	if err != nil {
		return w, err
	}
	// In a separate mount namespace the worker sees other hosts.
	isolate := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		isolate = append(isolate, "--map-root-user")
	}
	environment := []string{"PATH=" + installed(os.Getenv("PATH"))}
	// of a network whose proxy decrypts
	for _, name := range []string{"NODE_EXTRA_CA_CERTS", "SSL_CERT_DIR", "SSL_CERT_FILE"} {
		if file := os.Getenv(name); file != "" {
			environment = append(environment, name+"="+file)
		}
	}
	if p.login {
		environment = append(environment, "SSL_CERT_FILE="+trust, "REGISTRY_LOGIN="+login)
	}
	w.worker, err = door.Program{
		Name: "worker", Dir: w.dir,
		Args: append(isolate, "sh", "-c", `mount --bind "$0" /etc/hosts && exec "$@"`, hosts,
			filepath.Join(b.Bin, "worker"), "-standalone"),
		Env: append(environment,
			"ERRAND_CONFIG="+config, "ERRAND_STATE_DIR="+filepath.Join(w.dir, "state"), "ERRAND_HTTP_ADDR=127.0.0.1:0",
			"ERRAND_WORKER_ADDR=127.0.0.1:0", "ERRAND_CONSOLE_TOKEN="+door.Token, "ERRAND_CLAUDE="+cli,
			"ERRAND_ALLOW_ROOT=true", "ERRAND_SANDBOX=bwrap", "ANTHROPIC_BASE_URL="+w.model.URL(),
			"ANTHROPIC_API_KEY=sk-ant-bench-key", "GITHUB_API_URL="+w.github.APIURL(), "GITHUB_URL="+w.github.URL(),
			"GITHUB_TOKEN=ghp_test", "GITHUB_WEBHOOK_SECRET=github-secret",
		),
	}.Serve(ctx)
	return w, err
}

// installed returns a PATH without the directories in a home, which a service does not have and a run does not see.
func installed(path string) string {
	home, err := os.UserHomeDir()
	return strings.Join(slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		return err == nil && strings.HasPrefix(dir, home+"/")
	}), ":")
}

func (w *world) stop() (err error) {
	if w.worker != nil {
		err = w.worker.Stop()
	}
	w.model.Close()
	if w.github != nil {
		w.github.Close()
	}
	return err
}

// ask sends a message about a repository and waits for the answer. It returns the time until the model was called.
func (w *world) ask(ctx context.Context, repo, message string) (took time.Duration, err error) {
	for len(w.called) > 0 {
		<-w.called
	}
	body, err := json.Marshal(map[string]string{"message": message, "repo": repo})
	if err != nil {
		return 0, fmt.Errorf("ask: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.worker.Addr+"/api/chat",
		strings.NewReader(string(body)))
	if err != nil {
		return 0, fmt.Errorf("ask: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+door.Token)
	req.Header.Set("Content-Type", "application/json")
	answered, begun := make(chan error, 1), time.Now()
	go func() { answered <- w.converse(req) }()
	select {
	case <-w.called:
		took = time.Since(begun)
		return took, <-answered
	case err := <-answered:
		if err == nil {
			err = errors.New("ask: an answer came without the model")
		}
		return 0, err
	}
}

// converse sends a request to the chat and reads its answer to the end.
func (w *world) converse(req *http.Request) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	defer resp.Body.Close()
	lines, said := bufio.NewScanner(resp.Body), false
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Type, Content string }
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok || json.Unmarshal([]byte(data), &e) != nil {
			continue
		}
		if e.Type == "error" {
			return fmt.Errorf("ask: %s\n%s", e.Content, w.events(req.Context(), resp.Header.Get("Errand-Task")))
		}
		said = said || e.Type == "token"
	}
	if !said {
		return fmt.Errorf("ask: no answer came: %s: %w", resp.Status, lines.Err())
	}
	return nil
}

// events returns the events of a task, which has ended.
func (w *world) events(ctx context.Context, id string) []byte {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.worker.Addr+"/api/tasks/"+id+"/events",
		http.NoBody)
	if err != nil {
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+door.Token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	return all
}

// results returns what the tools of the last conversation have printed.
func (w *world) results() string {
	var all strings.Builder
	requests := w.model.Requests()
	for _, request := range slices.Backward(requests) {
		var call struct {
			Messages []struct{ Content json.RawMessage }
		}
		_ = json.Unmarshal(request.Body, &call)
		for _, m := range call.Messages {
			var blocks []struct {
				Type    string
				Content json.RawMessage
			}
			_ = json.Unmarshal(m.Content, &blocks)
			for _, block := range blocks {
				var text string
				if block.Type == "tool_result" && json.Unmarshal(block.Content, &text) == nil {
					all.WriteString(text + "\n")
				}
			}
		}
		if all.Len() > 0 {
			break
		}
	}
	return all.String()
}
