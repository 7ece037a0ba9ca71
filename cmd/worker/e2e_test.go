package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// A mention is answered in its thread, and a second one continues the same conversation. However often and in whatever
// form an event is delivered, it is one task. It is in the metrics and in the trace of its task.
func TestMention(t *testing.T) {
	t.Parallel()
	w, traces := newWorld(t), newReceiver(t)
	w.env["ERRAND_METRICS_TOKEN"] = metricsToken
	w.env["OTEL_EXPORTER_OTLP_ENDPOINT"], w.env["OTEL_EXPORTER_OTLP_HEADERS"] =
		traces.URL, "Authorization=Bearer%20otlp-token-for-tests"
	w.model.Answer("total", modelfake.Turn{
		Text: "Looking.", Tools: []modelfake.ToolCall{{
			Name: "Bash", Input: map[string]string{"command": "cat total.go"},
		}},
	}, bash("exit 3"), modelfake.Turn{Text: "The **total** is fine. (prompts so far: {{turns}})"})
	w.model.Answer("sure", modelfake.Turn{Text: "Quite sure. (prompts so far: {{turns}})"})
	base := w.standalone()

	root := w.mention("is the total right?", "")
	first := w.answers(root, 1)[0]
	if !strings.Contains(first, "The **total** is fine. (prompts so far: 1)") ||
		!strings.Contains(first, "<@"+person+">") {
		t.Errorf("first answer: %s", first)
	}
	if r := w.slack.Calls("reactions.add"); len(r) != 1 || r[0].Form.Get("name") != "eyes" {
		t.Errorf("reactions: %+v", r)
	}
	w.measured(base)
	traces.traced(t)
	second := w.mention("are you sure?", root)
	if got := w.answers(root, 2)[1]; !strings.Contains(got, "Quite sure. (prompts so far: 2)") {
		t.Errorf("second answer: %s", got)
	}

	// The same mention in every form in which Slack may redeliver it.
	for _, kind := range []string{slackfake.MessageEvent, slackfake.AppMention} {
		if err := w.slack.Redeliver(t.Context(), second, kind); err != nil {
			t.Fatal(err)
		}
	}
	last := w.mention("sure again?", root)
	if got := w.answers(root, 3); len(got) != 3 || !strings.Contains(got[2], "so far: 3") {
		t.Errorf("answers after redelivery: %q (last mention %s)", got, last)
	}

	var list struct {
		Tasks []struct {
			Task struct {
				ID     string `json:"id"`
				Repo   string `json:"repo"`
				Thread string `json:"thread"`
			} `json:"task"`
			State string `json:"state"`
		} `json:"tasks"`
	}
	if err := json.Unmarshal([]byte(w.get(base+"/api/tasks")), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Tasks) != 3 || list.Tasks[0].Task.Repo != repo {
		t.Errorf("tasks: %+v", list)
	}
	if page := w.get(base + "/queues/api/queues"); !strings.Contains(page, `"queue":"interactive"`) {
		t.Errorf("the queue pages, of a user with the documented rights: %s", page)
	}
	id := list.Tasks[len(list.Tasks)-1].Task.ID
	for _, ext := range []string{".log", ".ndjson"} {
		log, err := os.ReadFile(filepath.Join(w.env["ERRAND_STATE_DIR"], "logs", id+ext))
		if err != nil || !bytes.Contains(log, []byte("total.go")) || bytes.Contains(log, []byte(modelKey)) {
			t.Errorf("%s%s: %v\n%s", id, ext, err, log)
		}
	}
	w.secretsStayInside()
}

// A CLI that ignores everything is gone when its worker is killed, with every process that it started: the keeper ends the
// run. Another worker begins again, and ends it after its limit. The thread shows why.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alive := w.stubborn()
	w.env["ERRAND_RUN_LIMIT"] = "6s"
	w.frontDoor()
	first := w.process()
	root := w.mention("go", "")
	alive.up(w)
	w.someMarked(root)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()
	alive.gone(w)
	w.noneMarked(root)

	again := &fifo{path: alive.path}
	w.process()
	again.up(w) // the CLI runs again
	again.gone(w)
	final := w.answers(root, 1)
	if len(final) != 1 || !strings.Contains(final[0], "time limit of 6s") ||
		!strings.Contains(final[0], "I had got as far as this") {
		t.Errorf("final message: %q", final)
	}
	w.noneMarked(root)
}

// The same when its worker is frozen: the whole run is dead before another worker may have the task, and the first
// worker adds nothing when it continues.
func TestFrozenWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	alive := w.stubborn()
	w.env["ERRAND_RUN_LIMIT"] = "6s"
	w.frontDoor()
	first := w.process()
	root := w.mention("go", "")
	alive.up(w)
	w.someMarked(root)
	at := time.Now()
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	alive.gone(w)
	t.Logf("the run of the frozen worker was over after %s", time.Since(at))
	w.noneMarked(root)

	again := &fifo{path: alive.path}
	w.process()
	again.up(w)
	t.Logf("another worker started after %s", time.Since(at))
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	again.gone(w)
	w.answers(root, 1)
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err != nil {
		t.Error(err)
	}
	final := w.answers(root, 1)
	if len(final) != 1 || !strings.Contains(final[0], "time limit of 6s") {
		t.Errorf("final message: %q", final)
	}
	w.noneMarked(root)
}

// taskID returns the ID of the task of a mention.
func (w *world) taskID(ts string) string {
	return strings.ReplaceAll(ts, ".", "") + "-slack-" + strings.ToLower(channel)
}

// someMarked proves that noneMarked looks for the right thing. One is enough: the other may be between fork and exec,
// where it shows no environment.
func (w *world) someMarked(ts string) {
	w.Helper()
	if len(w.marked(w.taskID(ts))) == 0 {
		w.Errorf("no processes carry the marker of %s", w.taskID(ts))
	}
}

func (w *world) noneMarked(ts string) {
	w.Helper()
	if left := w.marked(w.taskID(ts)); len(left) > 0 {
		w.Errorf("processes of the run are alive: %v", left)
	}
}

// The HTTP API streams a run to its client, and the run outlives the connection. A picture reaches the model, and the
// agent can ask.
func TestChat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	gate := make(chan struct{})
	w.model.Answer("slow", modelfake.Turn{Text: "at last", Gate: gate})
	w.model.Answer("", modelfake.Turn{Text: "You are in {{prompt}}."})
	base := w.standalone()

	body := w.chat(t.Context(), base, `{"message":"a scratch directory"}`)
	for _, want := range []string{
		`"type":"token"`, `"type":"done"`, "You are in a scratch directory.", "data: [DONE]",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in\n%s", want, body)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	req := w.chatRequest(ctx, base, `{"message":"slow","thread":"t1"}`)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.Read(make([]byte, 1)); err != nil { // the stream has begun: the task is submitted
		t.Fatal(err)
	}
	cancel()
	_ = resp.Body.Close()
	close(gate)
	// The next message of the thread wants another model, so it waits for the run whose client is gone, and continues
	// its conversation.
	if body := w.chat(t.Context(), base,
		`{"message":"{{turns}}","thread":"t1","model":"opus"}`); !strings.Contains(body, "[DONE]") {
		t.Error(body)
	}
	if n := len(w.model.Requests()); w.model.Requests()[n-1].Prompts != 2 {
		t.Errorf("the last request held %d prompts, want 2", w.model.Requests()[n-1].Prompts)
	}
	w.picture(base)
	w.asked(base)
}

func (w *world) chatRequest(ctx context.Context, base, body string) *http.Request {
	w.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/chat", strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	return req
}

func (w *world) chat(ctx context.Context, base, body string) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	resp, err := http.DefaultClient.Do(w.chatRequest(ctx, base, body))
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.Fatalf("chat: %s, %v: %s", resp.Status, err, all)
	}
	return fmt.Sprint(string(all))
}
