package assemble

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/config"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
)

// recipes returns the fenced blocks of a language in the recipes of docs/automation.md.
func recipes(t *testing.T, language string) (blocks []string) {
	t.Helper()
	doc, err := os.ReadFile("../../../docs/automation.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "\n## Linear and Jira\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)\n```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

// The recipes for Linear and Jira, as they stand in the document, start the tasks that it promises.
func TestRecipes(t *testing.T) {
	const linear, jira = "lin_wh_a-secret-of-linear", "a-secret-of-jira"
	t.Setenv("LINEAR_HOOK_SECRET", linear)
	t.Setenv("JIRA_HOOK_SECRET", jira)
	file := filepath.Join(t.TempDir(), "errand.yaml")
	if err := os.WriteFile(file, []byte(recipes(t, "yaml")[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ERRAND_CONFIG", file)
	t.Setenv("REDIS_URL", redistest.Start(t))
	t.Setenv("ERRAND_CONSOLE_TOKEN", consoleToken)
	t.Setenv("ERRAND_STATE_DIR", t.TempDir())
	c, err := Load(os.Getenv, config.RoleFrontdoor)
	if err != nil {
		t.Fatal(err)
	}
	p, door := openFrontDoor(t, c, slog.New(slog.DiscardHandler))
	post := func(hook, body string, header ...string) (stored bool) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/"+hook, strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		door.ServeHTTP(w, r)
		var answer struct{ Stored bool }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); w.Code != http.StatusOK || err != nil {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
		return answer.Stored
	}
	known := map[string]bool{}
	check := func(stored bool, words ...string) {
		t.Helper()
		if !stored {
			t.Fatalf("what has %q is not stored", words)
		}
		task := newTask(t, p, known)
		for i, want := range words {
			if i > 0 {
				want = "<outside what=\"payload\">\n" + want + "\n</outside>"
			}
			if !strings.Contains(task.Prompt, want) || task.Repo != "acme/api" || strings.Contains(task.Prompt, "no value") {
				t.Errorf("%+v has no %q", task, want)
			}
		}
	}
	sign := func(secret, body string) string {
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = mac.Write([]byte(body))
		return hex.EncodeToString(mac.Sum(nil))
	}
	fromLinear := func(body, delivery string) (stored bool) {
		return post("linear", body, "Linear-Signature", sign(linear, body), "Linear-Delivery", delivery)
	}

	sent := recipes(t, "json")
	for i := range sent {
		sent[i] = regexp.MustCompile(`("webhookTimestamp": )\d+`).ReplaceAllString(sent[i], fmt.Sprint("${1}", time.Now().UnixMilli()))
	}
	check(fromLinear(sent[0], "1"), "Find the cause", "ENG-42", "Export fails", "The CSV is empty since *Monday*.")
	check(fromLinear(sent[1], "2"), "Do what this comment asks for.", "ENG-42", "Export fails", "/errand also look at the import")
	fromLinear(sent[0], "1") // a repetition, which becomes no task
	for i, other := range []string{
		strings.ReplaceAll(sent[0], `"create"`, `"update"`), strings.ReplaceAll(sent[1], "/errand", "errand?"),
		strings.ReplaceAll(sent[1], "/errand also look at the import", "no"), strings.ReplaceAll(sent[0], `"Issue"`, `"Project"`),
	} {
		if fromLinear(other, "other "+string(rune('a'+i))) {
			t.Errorf("%s is stored", other)
		}
	}
	body := strings.NewReplacer("{{issue.key}}", "SHOP-7", "{{issue.summary.asJsonString}}", `"Cart \"x\" is empty"`,
		"{{issue.description.asJsonString}}", `"Since\nMonday."`).Replace(sent[2])
	words := []string{"Find the cause", "SHOP-7", `Cart "x" is empty`, "Since\nMonday."}
	check(post("jira", body, "Authorization", "Bearer "+jira), words...)
	check(post("jira", body, "X-Hub-Signature", "sha256="+sign(jira, body)), words...)
}

// newTask waits for the only task that is not known, and notes it.
func newTask(t *testing.T, p *Parts, known map[string]bool) (task tasks.Task) {
	t.Helper()
	await.Until(t, "a request is a task", func() bool {
		list, err := p.Desk.List(t.Context(), desk.Filter{Limit: 10})
		if err != nil || len(list.Tasks) > len(known)+1 {
			t.Fatalf("%d tasks, %v", len(list.Tasks), err)
		}
		for _, st := range list.Tasks {
			if !known[st.Task.ID] {
				task, known[st.Task.ID] = st.Task, true
				return true
			}
		}
		return false
	})
	return task
}
