package github

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/internal/doctor"
)

// diagnoseTimeout bounds all calls of one Diagnose.
const diagnoseTimeout = 15 * time.Second

// Diagnose reports whether the credentials allow all that errand does, and how the App's webhooks fare.
func (f *Forge) Diagnose(ctx context.Context) []doctor.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnoseTimeout)
	defer cancel()
	if f.IsApp() {
		return f.diagnoseApp(ctx)
	}
	return f.diagnoseToken(ctx)
}

// unreachable is the finding when GitHub does not say who errand is.
func unreachable(err error, credential, remedy string) doctor.Finding {
	if StatusCode(err) == http.StatusUnauthorized {
		return doctor.Finding{What: "GitHub refuses " + credential, Why: "Nothing can be read or written.", Remedy: remedy, Fatal: true}
	}
	return doctor.Finding{What: "GitHub does not answer", Why: err.Error(), Remedy: "Look at the network, and at GITHUB_API_URL.", Fatal: true}
}

// expiry is how long before its end a token is reported.
const expiry = 14 * 24 * time.Hour

// diagnoseToken reports whose the token is. GitHub reports the scopes of classic tokens only.
func (f *Forge) diagnoseToken(ctx context.Context) []doctor.Finding {
	me, resp, err := f.clients.own.Users.Get(ctx, "")
	if err != nil {
		return []doctor.Finding{unreachable(err, "the token", "Make a new one, and set GITHUB_TOKEN to it.")}
	}
	list := []doctor.Finding{{What: "GitHub knows errand as " + me.GetLogin()}}
	if end := resp.TokenExpiration; !end.IsZero() && end.Sub(f.cfg.Now()) < expiry {
		list = append(list, doctor.Finding{
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
		list = append(list, doctor.Finding{
			What: "GitHub: the token lacks the scope repo", Why: "Private repositories are not seen, and public ones with public_repo alone.",
			Remedy: "Make one with it, and set GITHUB_TOKEN to it.",
		})
	}
	if slices.Contains(scopes, "workflow") {
		list = append(list, workflowsFinding("the token has the scope workflow", "Make one without it."))
	}
	return list
}

// workflowsFinding warns of a permission that lets an agent's commits change workflows.
func workflowsFinding(what, remedy string) doctor.Finding {
	return doctor.Finding{What: "GitHub: " + what, Why: "What an agent writes could change workflows, which run with the repository's secrets.", Remedy: remedy}
}

// missingPermissions reports the needed permissions that whom lacks.
func missingPermissions(whom string, has map[string]string, remedy string) (list []doctor.Finding) {
	for _, p := range permissions() {
		if have := has[p.name]; have == "write" || have == p.level {
			continue
		}
		list = append(list, doctor.Finding{
			What: fmt.Sprintf("GitHub: %s lacks the permission %s: %s", whom, p.name, p.level), Why: "Without it " + p.use + ".",
			Remedy: remedy, Fatal: p.must,
		})
	}
	return list
}

// How far this machine's clock may be ahead of GitHub's, and behind, for the App's signatures to be valid: ghinstallation dates them 30
// seconds back, and for 2 minutes.
const (
	ahead  = 30 * time.Second
	behind = 90 * time.Second
)

// clockSkew compares this machine's clock with GitHub's. It reports half of the allowed skew or more.
func (f *Forge) clockSkew(resp *github.Response) []doctor.Finding {
	if resp == nil {
		return nil
	}
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		return nil
	}
	skew := f.cfg.Now().Sub(at).Round(time.Second)
	if -behind/2 < skew && skew < ahead/2 {
		return nil
	}
	return []doctor.Finding{{
		What: fmt.Sprintf("the clock is %s away from GitHub's", skew.Abs()), Why: "30 s ahead or 90 s behind, all that the App signs is refused.",
		Remedy: "Set the clock by NTP, on every machine of the fleet.", Fatal: skew <= -behind || ahead <= skew,
	}}
}
