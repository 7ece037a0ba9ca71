package githubfake_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/fake/githubfake"
)

const postComment = "POST /repos/{o}/{r}/issues/{n}/comments"

func comment(ctx context.Context, c *github.Client, body string) error {
	_, _, err := c.Issues.CreateComment(ctx, "acme", "api", 1, &github.IssueComment{Body: &body})
	return err
}

func bodies(s *githubfake.Server) (out []string) {
	for _, c := range s.Comments(repo, 1) {
		out = append(out, c.Body)
	}
	return out
}

func TestFail(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	c := newClient(t, s, "ghp_test")
	s.Fail(postComment, githubfake.Failure{Times: 2, Status: 502})
	s.Fail(postComment, githubfake.Failure{Status: 500, After: true})
	s.Fail(postComment, githubfake.Failure{})            // cut, nothing done
	s.Fail(postComment, githubfake.Failure{After: true}) // cut, done
	var got []bool
	for _, body := range []string{"1", "2", "3", "4", "5", "6"} {
		got = append(got, comment(t.Context(), c, body) == nil)
	}
	if diff := cmp.Diff([]bool{false, false, false, false, false, true}, got); diff != "" {
		t.Errorf("successes (-want +got):\n%s", diff)
	}
	// Only lost answers leave their comment behind.
	if diff := cmp.Diff([]string{"3", "5", "6"}, bodies(s)); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
	var statuses []int
	for _, call := range s.Calls(postComment) {
		statuses = append(statuses, call.Status)
	}
	if diff := cmp.Diff([]int{502, 502, 500, 0, 0, 201}, statuses); diff != "" {
		t.Errorf("recorded statuses (-want +got):\n%s", diff)
	}
	if call := s.Calls(postComment)[5]; string(call.Body) != `{"body":"6"}`+"\n" || call.As != "token" ||
		call.Path != "/repos/acme/api/issues/1/comments" {
		t.Errorf("recorded call: %+v", call)
	}
}

// The failures our code must tell apart are the ones go-github does.
func TestFailAsRateLimit(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	lift := s.Fail(postComment, githubfake.Failure{Times: -1, Status: 403, Header: http.Header{
		"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"1"},
	}})
	c := newClient(t, s, "ghp_test")
	for range 3 {
		if _, ok := errors.AsType[*github.RateLimitError](comment(t.Context(), c, "x")); !ok {
			t.Error("not a RateLimitError")
		}
	}
	lift()
	s.Fail(postComment, githubfake.Failure{
		Status: 403, Header: http.Header{"Retry-After": {"7"}},
		Body: `{"message":"slow","documentation_url":"https://docs.github.com/rest/overview#secondary-rate-limits"}`,
	})
	err := comment(t.Context(), newClient(t, s, "ghp_test"), "x")
	if e, ok := errors.AsType[*github.AbuseRateLimitError](err); !ok || e.GetRetryAfter().Seconds() != 7 {
		t.Errorf("got %v, want an AbuseRateLimitError of 7 s", err)
	}
	if err := comment(t.Context(), newClient(t, s, "ghp_test"), "x"); err != nil {
		t.Errorf("after the failures: %v", err)
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	c := newClient(t, s, "ghp_test")
	hold := make(chan struct{})
	s.Fail(postComment, githubfake.Failure{Hold: hold})
	done := make(chan error, 1)
	go func() { done <- comment(context.WithoutCancel(t.Context()), c, "late") }()
	err := s.Wait(t.Context(), func(s *githubfake.Server) bool { return len(s.Calls(postComment)) == 1 })
	if err != nil {
		t.Fatal(err)
	}
	// The call is there and nothing is done; others are served meanwhile.
	if err := comment(t.Context(), c, "early"); err != nil {
		t.Fatal(err)
	}
	close(hold)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"early", "late"}, bodies(s)); diff != "" {
		t.Errorf("comments (-want +got):\n%s", diff)
	}
}

func TestFailGitPush(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	g := newGit(t, "ghp_test")
	g.run(t, "clone", r.CloneURL(), "work")
	g.dir = filepath.Join(g.home, "work")
	s.Fail("POST /{o}/{r}/git-receive-pack", githubfake.Failure{Status: 500, After: true})
	if _, err := g.try(t, "push", "origin", "HEAD:refs/heads/x"); err == nil {
		t.Error("the push did not notice the lost answer")
	}
	if _, err := r.SHA("refs/heads/x"); err != nil {
		t.Errorf("the push was not performed: %v", err)
	}
}

func TestUnknownRoute(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	_, _, err := newClient(t, s, "ghp_test").Gists.List(t.Context(), "", nil)
	wantError(t, err, 404, "Not Found")
	if all := s.Calls(""); len(all) != 1 || all[0].Pattern != "" || all[0].Path != "/gists" || all[0].Status != 404 {
		t.Errorf("calls: %+v", all)
	}
	defer func() {
		if v := recover(); v == nil || !strings.Contains(v.(string), "POST /nothing") {
			t.Errorf("recovered %v, want a panic that names the pattern", v)
		}
	}()
	s.Fail("POST /nothing", githubfake.Failure{})
}

func TestWait(t *testing.T) {
	t.Parallel()
	s, _ := start(t, githubfake.Config{})
	open(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	looked := make(chan struct{}, 100)
	done := make(chan error, 1)
	go func() {
		done <- s.Wait(ctx, func(s *githubfake.Server) bool {
			looked <- struct{}{}
			return len(s.Comments(repo, 1)) == 2
		})
	}()
	<-looked
	must(s.Comment(t.Context(), repo, 1, "alice", "1"))(t)
	<-looked
	must(s.Comment(t.Context(), repo, 1, "alice", "2"))(t)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	cancel(why)
	if err := s.Wait(ctx, func(*githubfake.Server) bool { return false }); !errors.Is(err, why) {
		t.Errorf("cancelled wait: %v", err)
	}
	go func() { done <- s.Wait(t.Context(), func(*githubfake.Server) bool { return false }) }()
	s.Close()
	if err := <-done; !errors.Is(err, githubfake.ErrClosed) {
		t.Errorf("wait on a closed server: %v", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	s, r := start(t, githubfake.Config{})
	open(t, s)
	rc := receive(t, s)
	c := newClient(t, s, "ghp_test")
	// Neither a held request nor an echo that is not answered keeps it open.
	s.Fail(postComment, githubfake.Failure{Hold: make(chan struct{})})
	done := make(chan error, 1)
	go func() { done <- comment(context.WithoutCancel(t.Context()), c, "x") }()
	if err := s.Wait(t.Context(), func(s *githubfake.Server) bool {
		return len(s.Calls(postComment)) == 1
	}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if err := <-done; err == nil {
		t.Error("the held request was answered")
	}
	if _, err := os.Stat(r.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory is still there: %v", err)
	}
	if got := rc.seen(); len(got) != 0 {
		t.Errorf("webhooks after Close: %v", got)
	}

	// A directory that was given stays.
	dir := t.TempDir()
	s2, r2 := start(t, githubfake.Config{Dir: dir})
	s2.Close()
	if _, err := os.Stat(r2.Dir()); err != nil {
		t.Error(err)
	}
	if _, err := githubfake.New(githubfake.Config{AppID: 1}); err == nil {
		t.Error("an App without a key")
	}
}
