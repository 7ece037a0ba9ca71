package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/workspace"
)

// changed stores the changes of a run.
func (h *harness) changed(c *store.Claim, changes tasks.Changes) {
	h.Helper()
	if err := c.SaveLatest(h.Context(), tasks.DiffLog, changes.Encode()); err != nil {
		h.Fatal(err)
	}
}

// goFile is a change of Go code, and hostile one of everything else.
var (
	goFile = workspace.FileChange{
		Name: "invoice/total.go", Kind: "M", Added: 2, Removed: 1,
		Patch: "diff --git a/invoice/total.go b/invoice/total.go\nindex 1..2 100644\n--- a/invoice/total.go\n+++ b/invoice/total.go\n" +
			"@@ -4,4 +4,5 @@ package invoice\n \n-func Total() int { return 1 }\n+// Total is right.\n+func Total() int { return \"<b>\" }\n \n",
	}
	hostile = workspace.FileChange{
		Name: "a \"b\"\n<script>/\u202e😀שלום.html", Kind: "A", Added: 3,
		Patch: "diff --git a/x b/x\nnew file mode 100644\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,3 @@\n+</script><script>alert(1)</script>\x1b[31m\r\n" +
			"+if (admin) { // \u202e } \u2066 \u200b\n+" + strings.Repeat("x", 5000) +
			"\n\\ No newline at end of file\n",
	}
)

func changesOf(files ...workspace.FileChange) tasks.Changes {
	return tasks.NewChanges(workspace.Comparison{Files: files, Left: []string{"huge.bin"}}, agent.NewRedactor().String)
}

func TestChangesWhileARunGoesOn(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	path := "/tasks/" + id
	h.contains(h.get(path), http.StatusOK, "!Changes")
	h.contains(h.get(path+"/changes", "Accept", "text/html"), http.StatusNotFound, "it has reached no checkpoint yet")
	if detail := h.problem(h.get("/api/tasks/"+id+"/diff"), http.StatusNotFound); !strings.Contains(detail,
		"no checkpoint") {
		t.Error(detail)
	}

	changes := changesOf(goFile, hostile)
	changes.Live, changes.At = true, time.Date(2026, 11, 2, 9, 58, 7, 0, time.UTC)
	h.changed(c, changes)
	for _, page := range []string{path, path + "/changes"} {
		h.contains(h.get(page), http.StatusOK,
			`3 files <b class="plus">+5</b> <b class="minus">−1</b>`, "09:58:07 UTC</time>, the latest checkpoint",
			">invoice/total.go</a>", "<code>huge.bin</code>",
			`href="/api/tasks/`+id+`/diff"`,
			`<span class="hunk">@@ -4,4 &#43;4,5 @@ package invoice`, `<span class="add">&#43;// Total is right.`,
			`<span class="add">&#43;func Total() int { return &#34;&lt;b&gt;&#34; }`, `<span class="del">-func Total()`,
			`\u202e } \u2066 \u200b`, `<span class="add">&#43;&lt;/script&gt;`, "!<script>alert", "!\x1b", "!\u202e",
			"!\u200b", " … 3001 more characters", "No newline at end of file",
			`a &#34;b&#34;\n&lt;script&gt;/\u202e😀שלום.html`, "!style=")
	}
	a := h.get("/api/tasks/" + id + "/diff")
	want := "# This diff is incomplete: large files are cut or left out, and secrets are redacted.\n" +
		goFile.Patch + hostile.Patch
	if a.Header.Get("Content-Type") != "text/x-diff; charset=utf-8" || a.text != want {
		t.Errorf("%s:\n%s", a.Header, a.text)
	}

	h.changed(c, changesOf())
	h.End(c,
		tasks.Ending{
			Kind: tasks.Answered,
			Published: &tasks.Published{Work: tasks.Work{Verification: &tasks.Verification{
				Ran: []tasks.Verified{
					{Command: "make test", Outcome: agent.Done},
					{Command: "make lint", Outcome: agent.Failed, ExitCode: 2, Said: "<it broke>"},
				},
				Unrun: []string{"make e2e"}, Problem: "time was up",
			}}},
		})
	h.contains(h.get(path), http.StatusOK, "!checkpoint", "1 of 3 checks failed: make lint; 1 was not run: time was up",
		">passed</span> <code>make test",
		"&lt;it broke&gt;", ">not run</span> <code>make e2e")
}

func TestChangesThatAreMissing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	h.changed(c, tasks.Changes{Failed: "The clone has no git directory any more."})
	h.End(c, tasks.Ending{Kind: tasks.Failed})
	h.contains(h.get("/tasks/"+id), http.StatusOK, "The clone has no git directory any more.",
		"!No files changed", "!Download<")
	if detail := h.problem(h.get("/api/tasks/"+id+"/diff"),
		http.StatusNotFound); detail != "The clone has no git directory any more." {
		t.Error(detail)
	}
	if err := c.SaveLatest(t.Context(), tasks.DiffLog, []byte("of another version")); err != nil {
		t.Fatal(err)
	}
	h.contains(h.get("/tasks/"+id), http.StatusOK, "!Changes")
}

// A page has so many lines; the others are on pages of their own.
func TestLargeChanges(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	id := h.submit(1)
	c := h.Claim(id)
	var files []workspace.FileChange
	for _, name := range []string{"a.go", "b.go", "c.bin", "d.txt"} {
		f := workspace.FileChange{Name: name, Kind: "A", Added: 5000, Binary: name == "c.bin"}
		if !f.Binary {
			f.Patch = "diff --git a/" + name + " b/" + name + "\n@@ -0,0 +1,5000 @@\n" +
				strings.Repeat("+func f() { return 1 }\n", 5000)
		}
		files = append(files, f)
	}
	h.changed(c, changesOf(files...))
	page := h.get("/tasks/" + id)
	h.contains(page, http.StatusOK, "Show 5001 lines", "5 files", "Binary, or larger than 1 MiB", `!class="add"`)
	if len(page.text) > 40<<10 {
		t.Errorf("the page has %d bytes", len(page.text))
	}
	_, link, _ := strings.Cut(page.text, `<p class="note"><a href="`)
	link, _, _ = strings.Cut(link, "#")
	one := h.get(link)
	h.contains(one, http.StatusOK, ">b.go</a>", "!Show 5001 lines", "!<h3>b.go")
	if n := strings.Count(one.text, `<span class="add">&#43;func f() { return 1 }`); n != 5000 {
		t.Errorf("%d lines of the file are shown", n)
	}
}
