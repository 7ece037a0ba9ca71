package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// results is the channel for the repository's results.
const results = "C0RESULTS"

// watch makes the repository read-only for errand.
func (w *world) watch() {
	w.Helper()
	text := "repositories:\n  " + repo + ":\n    results: " + results + "\nchannels:\n  " + channel +
		":\n    repository: " + repo + "\n"
	w.write(w.env["ERRAND_CONFIG"], text)
}

// written lists the requests by which errand changed anything on GitHub.
func (w *world) written() (all []string) {
	for _, c := range w.github.Calls("") {
		switch {
		case c.Method == http.MethodGet || c.Method == http.MethodHead || c.As == "":
		case strings.HasSuffix(c.Path, "/git-upload-pack"): // a fetch
		case strings.HasSuffix(c.Path, "/access_tokens"):
		case strings.HasSuffix(c.Path, "/graphql") && strings.Contains(string(c.Body), `"query":"query(`):
		default:
			all = append(all, c.Method+" "+c.Path)
		}
	}
	return all
}

// notices waits until a thread of the results channel has n notices, and returns their text with their blocks.
func (w *world) notices(root string, n int) (all []string) {
	w.Helper()
	w.until(fmt.Sprintf("%d notices", n), func() bool {
		all = nil
		for _, m := range w.slack.Messages(results, root) {
			if m.BotID != "" && strings.Contains(string(m.Metadata), "final/") {
				all = append(all, m.Text+string(m.Blocks))
			}
		}
		return len(all) >= n
	})
	return all
}

// Findings in a watched repository go to Slack, into one thread for each pull request. Nothing is written to GitHub,
// even if a person asks for it there. A question in that thread is answered there, about that pull request.
func TestWatchedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.asApp()
	w.watch()
	give := func(summary string, earlier string, findings ...map[string]any) modelfake.Turn {
		input := map[string]any{"summary": summary, "findings": append([]map[string]any{}, findings...)}
		if earlier != "" {
			input["earlier"] = []map[string]string{{"id": earlier, "status": "fixed"}}
		}
		return modelfake.Turn{Tools: []modelfake.ToolCall{{Name: "StructuredOutput", Input: input}}}
	}
	w.model.Answer("Review pull request", give("One problem with the units.", "", map[string]any{
		"id": "units", "severity": "major", "confidence": "high", "path": "total.go", "line": 3,
		"claim": "This adds cents to euros, @ann.", "evidence": "Total is in cents.", "original": "var Total = 1",
		"suggestion": "var Total = 100",
	}))
	w.model.Answer("why one", modelfake.Turn{Text: "Because of the **units**."})
	w.model.Answer("is it mended", modelfake.Turn{Text: "Not yet."})
	w.github.SetPermission(repo, "ann", "write")
	w.standalone()
	n, err := w.github.OpenPR(t.Context(), githubfake.PR{
		Repo: repo, Head: "fix-total", Title: "Fix the <!channel> total", User: "ann",
		Files: map[string]string{"total.go": "package total\n\nvar Total = 1\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var root string
	w.until("the first notice", func() bool {
		for _, m := range w.slack.Messages(results, "") {
			root = m.TS
		}
		return root != ""
	})
	head := w.github.Pulls(repo)[0].HeadSHA
	first := w.notices(root, 1)[0]
	for _, want := range []string{
		w.github.URL() + "/" + repo + "/pull/1|" + repo + "#1>", "1 new finding", "One problem with the units.",
		"**major** [`total.go:3`](" + w.github.URL() + "/" + repo + "/blob/" + head + "/total.go#L3)",
		"Total is in cents.", `var Total = 100`,
	} {
		if !strings.Contains(first, want) {
			t.Errorf("the notice lacks %s:\n%s", want, first)
		}
	}
	if strings.Contains(first, "<!channel>") || strings.Contains(first, `\u003c!channel`) {
		t.Error("the title calls everybody")
	}

	w.comment(n, "@errand why one?")
	if got := w.notices(root, 2)[1]; !strings.Contains(got, "Because of the **units**.") ||
		!strings.Contains(got, "Answer to ann") {
		t.Error(got)
	}
	for _, said := range []string{"/help", "/nonsense @errand", "/pause", "/cancel"} {
		w.comment(n, said)
	}
	// who may not use errand
	if _, err := w.github.Comment(t.Context(), repo, n, "cleo", "@errand why one?"); err != nil {
		t.Fatal(err)
	}

	asked, err := w.slack.Mention(t.Context(), slackfake.Message{
		Channel: results, User: person, Text: "is it mended?", ThreadTS: root,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.until("the answer in the thread", func() bool {
		for _, m := range w.slack.Messages(results, root) {
			if m.TS > asked && strings.Contains(m.Text, "Not yet.") {
				return true
			}
		}
		return false
	})
	if got := w.written(); len(got) != 0 {
		t.Errorf("written to GitHub: %q", got)
	}
	if got := len(w.slack.Messages(results, "")); got != 1 {
		t.Errorf("%d messages at the top of the channel", got)
	}
	calls := w.model.Requests()
	if last := string(calls[len(calls)-1].Body); !strings.Contains(last, "One problem with the units.") ||
		strings.Contains(last, `"name":"Bash"`) {
		t.Errorf("the follow-up was asked with %.3000s", last)
	}
	w.secretsStayInside()
}
