package peers

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// examples is how many payloads the corpus has.
const examples = 329

// answer is what the front door said to a delivery.
type answer struct {
	ID     string
	Action string
	Status int
	Said   string
}

// Whatever GitHub has been seen to send comes in, as GitHub's own library signs it: nothing breaks the front door, and
// what is for us becomes exactly the tasks of the golden file.
func TestOctokit(t *testing.T) {
	t.Parallel()
	hub, err := githubfake.New(githubfake.Config{WebhookSecret: "github-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	base := run(t, []string{
		"ERRAND_STATE_DIR=" + t.TempDir(), "ERRAND_HTTP_ADDR=127.0.0.1:0", "ERRAND_CONSOLE_TOKEN=" + console,
		"REDIS_URL=" + redistest.Start(t), "GITHUB_API_URL=" + hub.APIURL(), "GITHUB_URL=" + hub.URL(),
		"GITHUB_TOKEN=ghp_test", "GITHUB_WEBHOOK_SECRET=github-secret",
	}, "errand listens at", filepath.Join("..", "..", "bin", "enqueue"), "serve")

	var got strings.Builder
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, base+r.URL.Path, r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		req.Header = r.Header
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		said, _ := io.ReadAll(resp.Body)
		w.WriteHeader(resp.StatusCode)
		_, _ = io.WriteString(w, became(t, base, r.Header.Get("X-GitHub-Delivery"), strings.TrimSpace(string(said))))
	}))
	t.Cleanup(door.Close)
	all := deliverExamples(t, door.URL+"/github/webhook")
	if len(all) != examples {
		t.Errorf("%d payloads, want %d", len(all), examples)
	}
	for _, a := range all {
		if a.Status >= 500 {
			t.Errorf("%s %s was answered with %d %s", a.ID, a.Action, a.Status, a.Said)
		}
		if !strings.HasPrefix(a.Said, "Ignored: There is nothing to do for ") {
			fmt.Fprintf(&got, "%s %s: %d %s\n", a.ID, a.Action, a.Status, a.Said)
		}
	}
	got.WriteString("\n")
	for _, one := range listTasks(t, base) {
		fmt.Fprintf(&got, "%s\n", one)
	}
	path := filepath.Join("testdata", "octokit.golden")
	if *update {
		if err := os.WriteFile(path, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// deliverExamples lets octokit sign and send all that there is.
func deliverExamples(t *testing.T, url string) (all []answer) {
	t.Helper()
	cmd := exec.CommandContext(limited(t), "node", "octokit.mjs")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "WEBHOOK_URL=" + url, "WEBHOOK_SECRET=github-secret",
	}
	said := &strings.Builder{}
	cmd.Stderr = said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("octokit: %v: %s", err, said)
	}
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// console is the token of the API.
const console = "correct-horse-battery"

// inboxAPI is where the queue pages read the inbox.
const inboxAPI = "/queues/api/queues/inbox"

// fetch reads JSON from the front door. It returns false if there is none, such as of a queue that had no event yet.
func fetch(t *testing.T, url string, into any) bool {
	t.Helper()
	req, err := http.NewRequestWithContext(limited(t), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+console)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK && json.NewDecoder(resp.Body).Decode(into) == nil
}

// settle waits until the front door has interpreted all events.
func settle(t *testing.T, base string) {
	t.Helper()
	await.Until(t, "the inbox is empty", func() bool {
		var inbox struct{ Current struct{ Pending, Active int } }
		return !fetch(t, base+inboxAPI, &inbox) || inbox.Current.Pending+inbox.Current.Active == 0
	})
}

// became returns how GitHub was answered or, of an event that was stored, what became of it.
func became(t *testing.T, base, guid, said string) string {
	t.Helper()
	if said != "Stored." {
		return said
	}
	settle(t, base)
	var done struct{ Tasks []struct{ ID, Result string } }
	fetch(t, base+inboxAPI+"/completed_tasks?size=1000", &done)
	for _, event := range done.Tasks {
		if event.ID == "github."+guid {
			return event.Result
		}
	}
	return "Not interpreted."
}

// listTasks returns all tasks, the oldest last.
func listTasks(t *testing.T, base string) (list []string) {
	t.Helper()
	settle(t, base)
	for next := ""; ; {
		var page struct {
			Next  string
			Tasks []struct {
				State string
				Task  struct{ ID, Kind, Thread, Class, Profile, Repo, Ref, Actor, Prompt string }
			}
		}
		if !fetch(t, base+"/api/tasks?before="+next, &page) {
			t.Fatal("the front door lists no tasks")
		}
		for _, one := range page.Tasks {
			k := one.Task
			list = append(list, fmt.Sprintf("%s %s: %s in %s, class %s, profile %s, %s at %s, for %s: %q",
				k.ID, one.State, k.Kind, k.Thread, k.Class, k.Profile, k.Repo, k.Ref, k.Actor, k.Prompt))
		}
		if next = page.Next; next == "" {
			return list
		}
	}
}

// The examples of issues, with errand's login, label and mention where they have others: the event
// decides what becomes of each, as the golden file says.
func TestOctokitIssues(t *testing.T) {
	t.Parallel()
	var examples []struct {
		Name     string
		Examples []object
	}
	readJSON(t, &examples, "@octokit", "webhooks-examples", "api.github.com", "index.json")
	hub, err := githubfake.New(githubfake.Config{WebhookSecret: "github-secret"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hub.Close)
	if _, err := hub.CreateRepo("Codertocat", "Hello-World", nil); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, e := range examples {
		if !slices.Contains([]string{"issues", "issue_comment"}, e.Name) {
			continue
		}
		for i, payload := range e.Examples {
			// A separate fleet: the examples are about the same issue.
			base := door(t, "GITHUB_API_URL="+hub.APIURL(), "GITHUB_URL="+hub.URL(),
				"GITHUB_TOKEN=ghp_test", "GITHUB_WEBHOOK_SECRET=github-secret")
			for _, place := range []string{"issue", "comment"} {
				if o := dig(payload, place); o != nil {
					o["body"] = "@errand why?"
				}
			}
			if o := dig(payload, "label"); o != nil {
				o["name"] = "errand"
			}
			if o := dig(payload, "assignee"); o != nil {
				o["login"] = "errand"
			}
			resp, err := hub.Send(limited(t), e.Name, payload, githubfake.SendOptions{To: base + "/github/webhook"})
			if err != nil {
				t.Fatal(err)
			}
			said, _ := io.ReadAll(resp.Body)
			fmt.Fprintf(&got, "%s-%d %s: %d %s\n", e.Name, i, payload["action"], resp.StatusCode,
				became(t, base, resp.Request.Header.Get("X-GitHub-Delivery"), strings.TrimSpace(string(said))))
			for _, one := range listTasks(t, base) {
				fmt.Fprintf(&got, "    %s\n", one)
			}
		}
	}
	compareGolden(t, filepath.Join("testdata", "octokit-issues.golden"), got.String())
}
