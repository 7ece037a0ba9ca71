package environment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPullRequests(t *testing.T) {
	t.Parallel()
	for file, c := range map[string]struct {
		want  PullRequests
		wrong string // a part of the only complaint
	}{
		"{branch_prefix: team/bot-1/, title: '[errand] ', labels: [bot], draft: false, template: true}": {
			PullRequests{
				BranchPrefix: "team/bot-1/", Title: "[errand] ", Labels: []string{"bot"}, Draft: "false",
				Template: "true",
			}, "",
		},
		"{branch_prefix: main}":                             {PullRequests{}, "branch_prefix"},
		"{branch_prefix: ../x/}":                            {PullRequests{}, "branch_prefix"},
		"{branch_prefix: refs/}":                            {PullRequests{}, "branch_prefix"},
		"{branch_prefix: " + strings.Repeat("a", 51) + "/}": {PullRequests{}, "branch_prefix"},
		`{title: "a\nb", draft: true}`:                      {PullRequests{Draft: "true"}, "the title"},
		"{labels: [a, '']}":                                 {PullRequests{}, "the labels"},
		"{labels: [" + strings.Repeat("a, ", 50) + "a]}":    {PullRequests{}, "the labels"},
		"{draft: maybe}":                                    {PullRequests{}, "draft is neither"},
	} {
		d, wrong := Parse([]byte("pull_requests: " + file))
		if diff := cmp.Diff(c.want, d.PullRequests); diff != "" {
			t.Errorf("%.60s (-want +got):\n%s", file, diff)
		}
		if text := strings.Join(wrong, "; "); len(wrong) > 1 || (len(wrong) == 1) != (c.wrong != "") ||
			!strings.Contains(text, c.wrong) {
			t.Errorf("%.60s: complains %q", file, wrong)
		}
	}
	own := Declaration{PullRequests: PullRequests{
		BranchPrefix: "a/", Title: "a", Labels: []string{"a"}, Draft: "false", Template: "true",
	}}
	if diff := cmp.Diff(own, own.Under(Declaration{}),
		cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "Env" }, cmp.Ignore())); diff != "" {
		t.Errorf("under nothing: %s", diff)
	}
	operator := PullRequests{BranchPrefix: "b/", Labels: []string{}, Draft: "true", Template: "false"}
	want := operator
	want.Title = "a"
	if diff := cmp.Diff(want, own.Under(Declaration{PullRequests: operator}).PullRequests); diff != "" {
		t.Errorf("under the operator's: %s", diff)
	}
}
