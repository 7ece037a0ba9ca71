package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// examination bounds all the calls of one look at how GitHub is set up.
const examination = 15 * time.Second

// Examine looks whether the credentials are good for all that we do, and whether webhooks arrive.
func (s *Source) Examine(ctx context.Context) (list []tasks.Check) {
	ctx, cancel := context.WithTimeout(ctx, examination)
	defer cancel()
	if s.cfg.Token != "" {
		list = s.examineToken(ctx)
	} else {
		list = s.examineApp(ctx)
	}
	if s.inbound.wrong() {
		list = append(list, tasks.Check{
			What: "GitHub: the last webhook had a wrong signature", Why: "If it was GitHub's, no event is heard.",
			Remedy: "Compare GITHUB_WEBHOOK_SECRET with the secret of the webhook.",
		})
	}
	return list
}

// unanswered is what there is to say when GitHub does not tell who we are.
func unanswered(err error, credential, remedy string) tasks.Check {
	if status(err) == http.StatusUnauthorized {
		return tasks.Check{What: "GitHub refuses " + credential, Why: "Nothing can be read or written.", Remedy: remedy, Fatal: true}
	}
	return tasks.Check{What: "GitHub does not answer", Why: err.Error(), Remedy: "Look at the network, and at GITHUB_API_URL.", Fatal: true}
}

// expiry is how long before its end a token is told of.
const expiry = 14 * 24 * time.Hour

// examineToken asks whose the token is. What it may do GitHub tells only of classic ones.
func (s *Source) examineToken(ctx context.Context) []tasks.Check {
	me, resp, err := s.clients.own.Users.Get(ctx, "")
	if err != nil {
		return []tasks.Check{unanswered(err, "the token", "Make a new one, and set GITHUB_TOKEN to it.")}
	}
	list := []tasks.Check{{What: "GitHub knows us as " + me.GetLogin()}}
	if end := resp.TokenExpiration; !end.IsZero() && end.Sub(s.cfg.Now()) < expiry {
		list = append(list, tasks.Check{
			What: "GitHub: the token ends on " + end.UTC().Format(time.DateOnly), Why: "From then on nothing can be read or written.",
			Remedy: "Make a new one in time, and set GITHUB_TOKEN to it.",
		})
	}
	said, classic := resp.Header[http.CanonicalHeaderKey("X-OAuth-Scopes")]
	if !classic {
		return list
	}
	var scopes []string
	for name := range strings.SplitSeq(strings.Join(said, ","), ",") {
		scopes = append(scopes, strings.TrimSpace(name))
	}
	if !slices.Contains(scopes, "repo") {
		list = append(list, tasks.Check{
			What: "GitHub: the token lacks the scope repo", Why: "Private repositories are not seen, and public ones with public_repo alone.",
			Remedy: "Make one with it, and set GITHUB_TOKEN to it.",
		})
	}
	if slices.Contains(scopes, "workflow") {
		list = append(list, workflows("the token has the scope workflow", "Make one without it."))
	}
	return list
}

// workflows warns of what lets an agent's commits change workflows.
func workflows(what, remedy string) tasks.Check {
	return tasks.Check{What: "GitHub: " + what, Why: "What an agent writes could change workflows, which run with the repository's secrets.", Remedy: remedy}
}

// lacks are the permissions that were not given to whom.
func lacks(whom string, has map[string]string, remedy string) (list []tasks.Check) {
	for _, p := range permissions() {
		if have := has[p.name]; have == "write" || have == p.level {
			continue
		}
		list = append(list, tasks.Check{
			What: fmt.Sprintf("GitHub: %s lacks the permission %s: %s", whom, p.name, p.level), Why: "Without it " + p.use + ".",
			Remedy: remedy, Fatal: p.must,
		})
	}
	return list
}

// How far our clock may be ahead of GitHub's, and behind, for what the App signs to count: ghinstallation dates it half a minute back, and
// lets it hold for 2 minutes.
const (
	ahead  = 30 * time.Second
	behind = 90 * time.Second
)

// clock compares ours with GitHub's, and tells from the half of what it may be off.
func (s *Source) clock(resp *github.Response) []tasks.Check {
	if resp == nil {
		return nil
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return nil
	}
	skew := s.cfg.Now().Sub(at).Round(time.Second)
	if -behind/2 < skew && skew < ahead/2 {
		return nil
	}
	return []tasks.Check{{
		What: fmt.Sprintf("the clock is %s away from GitHub's", skew.Abs()), Why: "30 s ahead or 90 s behind, all that the App signs is refused.",
		Remedy: "Set the clock by NTP, on every machine of the fleet.", Fatal: skew <= -behind || ahead <= skew,
	}}
}
