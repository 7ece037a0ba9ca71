package githubfake_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

func TestSendSignatures(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	rc := receive(t, s)
	payload := map[string]any{"zen": "Keep it logically awesome.", "hook_id": 1}
	for _, c := range []struct {
		name string
		o    githubfake.SendOptions
		want int
	}{
		{"normal", githubfake.SendOptions{}, 204},
		{"form", githubfake.SendOptions{Form: true}, 204},
		{"sha1 only", githubfake.SendOptions{Signature: githubfake.SignSHA1}, 401},
		{"none", githubfake.SendOptions{Signature: githubfake.SignNone}, 401},
		{"wrong", githubfake.SendOptions{Signature: githubfake.SignWrong}, 401},
		{"raw body", githubfake.SendOptions{Body: []byte("{")}, 400},
	} {
		resp, err := s.Send(t.Context(), "ping", payload, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if body := must(io.ReadAll(resp.Body))(t); resp.StatusCode != c.want {
			t.Errorf("%s: answered %s: %s; want %d", c.name, resp.Status, body, c.want)
		}
	}
	// The signatures that were refused above are real: sha1 alone convinces
	// go-github, and wrong ones are there and differ.
	sent := s.Deliveries("ping")
	wrong := sent[4].Header
	if wrong.Get("X-Hub-Signature-256") == "" ||
		wrong.Get("X-Hub-Signature-256") == sent[0].Header.Get("X-Hub-Signature-256") {
		t.Error("SignWrong sent no signature, or the right one")
	}
	if err := github.ValidateSignature(sent[2].Header.Get("X-Hub-Signature"), sent[2].Body,
		[]byte("github-secret")); err != nil {
		t.Errorf("sha1: %v", err)
	}
	if e := last[*github.PingEvent](t, rc); e.GetZen() != "Keep it logically awesome." {
		t.Errorf("ping: %v", e)
	}
}

func TestRedeliver(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	rc := receive(t, s)
	open(t, s)
	first, there := s.LastDelivery("pull_request")
	if !there || first.Status != 204 || !first.Answered {
		t.Fatalf("first delivery: %+v", first)
	}
	if err := s.Redeliver(t.Context(), first.GUID); err != nil {
		t.Fatal(err)
	}
	again, _ := s.LastDelivery("")
	if !again.Redelivery || !bytes.Equal(again.Body, first.Body) ||
		again.Header.Get("X-Hub-Signature-256") != first.Header.Get("X-Hub-Signature-256") {
		t.Error("the redelivery differs from the delivery")
	}
	if rc.guids[0] != first.GUID || rc.guids[1] != first.GUID {
		t.Errorf("received GUIDs %v, want %s twice", rc.guids, first.GUID)
	}
	if err := s.Redeliver(t.Context(), "none"); err == nil {
		t.Error("redelivered what was never sent")
	}

	resp := must(s.Send(t.Context(), "ping", map[string]any{}, githubfake.SendOptions{GUID: "fixed"}))(t)
	if resp.StatusCode != http.StatusNoContent || rc.guids[2] != "fixed" {
		t.Errorf("fixed GUID: %s, %v", resp.Status, rc.guids)
	}
}

func TestReceiverThatRefuses(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	rc := receive(t, s)
	rc.status = http.StatusServiceUnavailable
	n, err := s.OpenPR(t.Context(), githubfake.PR{Repo: repo, Head: "a", Files: map[string]string{"a": "a"}})
	if n != 1 || err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("opened %d with error %v, want 1 and a 503", n, err)
	}
	rc.Close()
	if _, err := s.Comment(t.Context(), repo, 1, "alice", "x"); err == nil {
		t.Error("no error with the receiver gone")
	}
	if d, _ := s.LastDelivery("issue_comment"); d.Err == nil || d.Status != 0 {
		t.Errorf("delivery to nobody: %+v", d)
	}
	s.Deliver("")
	if _, err := s.Comment(t.Context(), repo, 1, "alice", "y"); err != nil {
		t.Errorf("without an address: %v", err)
	}
	if got := len(s.Comments(repo, 1)); got != 2 {
		t.Errorf("%d comments, want 2: a failed delivery undoes nothing", got)
	}
}

// Payload is enough to build an event the fake does not know by itself.
func TestPayload(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	rc := receive(t, s)
	n := open(t, s)
	p := must(s.Payload("created", repo, n, "bob"))(t)
	p["comment"] = map[string]any{"id": 9, "path": "README.md", "body": "@errand why?"}
	if resp := must(s.Send(t.Context(), "pull_request_review_comment", p,
		githubfake.SendOptions{}))(t); resp.StatusCode != http.StatusNoContent {
		t.Fatalf("answered %s", resp.Status)
	}
	e := last[*github.PullRequestReviewCommentEvent](t, rc)
	if e.GetComment().GetBody() != "@errand why?" || e.GetPullRequest().GetNumber() != n ||
		e.GetSender().GetLogin() != "bob" {
		t.Errorf("event: %v", e)
	}
}
