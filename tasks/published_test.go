package tasks

import (
	"slices"
	"testing"

	"github.com/errand-fleet/errand/forge"
)

func TestPublicationsAreTold(t *testing.T) {
	t.Parallel()
	work := func(repo string, n int) *Published {
		return &Published{Work: Work{Repo: repo}, PullRequest: forge.PullRequestRef{
			Number: n, URL: "https://hub.example/" + repo,
		}}
	}
	e := Ending{
		Kind: Answered, Changed: Diffstat{Files: 1, Added: 2}, Published: work("acme/api", 3),
		Also: []*Published{work("acme/web", 4), {Problem: "acme/docs: It failed."}},
	}
	if got, want := e.Note(),
		"Pull request acme/api#3: https://hub.example/acme/api · 1 file, +2 −0\nPull request acme/web#4: https://hub.example/acme/web\nacme/docs: It failed."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := e.Headline().Detail; got != "PR #3, 1 file, +2 −0, PR acme/web#4" {
		t.Errorf("%q", got)
	}
	if got := e.Beside(e.Published); !slices.Equal(got, []string{"acme/web#4"}) {
		t.Errorf("%v", got)
	}
	if repo, also := SplitRepositories("acme/api, acme/web,"); repo != "acme/api" ||
		!slices.Equal(also, []string{"acme/web"}) {
		t.Errorf("%s, %v", repo, also)
	}
}
