package github

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
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
	why := complaint(err, strings.TrimSpace) + "."
	f := doctor.Finding{What: "GitHub refuses " + credential, Why: why, Remedy: remedy, Fatal: true}
	switch code := StatusCode(err); {
	case code == http.StatusUnauthorized:
	case code == 0 || code >= http.StatusInternalServerError:
		f.What, f.Why, f.Remedy = "GitHub does not answer", err.Error(), doctor.Unreachable(err, "GITHUB_API_URL")
	default:
		f.What, f.Remedy = "GitHub refuses errand", "Do what it says, or correct GITHUB_API_URL."
	}
	return f
}

// expiry is how long before its end a token is reported.
const expiry = 14 * 24 * time.Hour

// diagnoseToken reports whose the token is. GitHub reports the scopes of classic tokens only.
func (f *Forge) diagnoseToken(ctx context.Context) []doctor.Finding {
	me, resp, err := f.clients.own.Users.Get(ctx, "")
	if err != nil {
		return []doctor.Finding{unreachable(err, "the token", "Create a new one, and set GITHUB_TOKEN to it.")}
	}
	list := []doctor.Finding{{What: "GitHub knows errand as " + me.GetLogin()}}
	if end := resp.TokenExpiration; !end.IsZero() && end.Sub(f.cfg.Now()) < expiry {
		list = append(list, doctor.Finding{
			What:   "GitHub: the token expires on " + end.UTC().Format(time.DateOnly),
			Why:    "After that errand can neither read nor write anything.",
			Remedy: "Create a new one in time, and set GITHUB_TOKEN to it.",
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
			What:   "GitHub: the token lacks the scope repo",
			Why:    "errand cannot access private repositories, and public ones only with public_repo.",
			Remedy: "Create a token with it, and set GITHUB_TOKEN to it.",
		})
	}
	if slices.Contains(scopes, "workflow") {
		list = append(list, workflowsFinding("the token has the scope workflow", "Make one without it."))
	}
	return list
}

// workflowsFinding warns of a permission that lets an agent's commits change workflows.
func workflowsFinding(what, remedy string) doctor.Finding {
	return doctor.Finding{
		What: "GitHub: " + what,
		Why:  "An agent's changes could alter workflows, which run with the repository's secrets.", Remedy: remedy,
	}
}

// missingPermissions reports the permissions that an account lacks.
func missingPermissions(whom string, has map[string]string, remedy string) (list []doctor.Finding) {
	for _, p := range permissions() {
		if have := has[p.name]; have == "write" || have == p.level {
			continue
		}
		list = append(list, doctor.Finding{
			What: fmt.Sprintf("GitHub: %s lacks the permission %s: %s", whom, p.name, p.level),
			Why:  "Without it " + p.use + ".", Remedy: remedy, Fatal: p.must,
		})
	}
	return list
}

// How far this machine's clock may be ahead of GitHub's, and behind, for the App's signatures to be valid:
// ghinstallation dates them 30 seconds back, and for 2 minutes.
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
		What:   fmt.Sprintf("the clock is %s away from GitHub's", skew.Abs()),
		Why:    "GitHub rejects an App whose clock is 30 s ahead or 90 s behind.",
		Remedy: "Synchronise the clocks of all machines of the fleet, for example with NTP.",
		Fatal:  skew <= -behind || ahead <= skew,
	}}
}

// diagnoseApp reports which App errand is, where it is installed, and how its webhooks fare.
func (f *Forge) diagnoseApp(ctx context.Context) []doctor.Finding {
	var app grantedApp
	resp, err := f.get(ctx, "app", &app)
	if err != nil {
		key := "Compare GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY with the settings of the " +
			"App, or make a new key there."
		return append([]doctor.Finding{unreachable(err, "what the App signs", key)}, f.clockSkew(resp)...)
	}
	const settings = "Add it in the settings of the App, and accept it where the App is installed."
	list := []doctor.Finding{{What: fmt.Sprintf("GitHub knows errand as the App %s (%d)", app.GetSlug(), app.GetID())}}
	list = append(list, f.clockSkew(resp)...)
	has := app.Permissions
	list = append(list, missingPermissions("the App", has, settings)...)
	if has["workflows"] != "" {
		list = append(list, workflowsFinding("the App has the permission workflows",
			"Remove it in the settings of the App."))
	}
	for _, name := range Events() {
		if !f.cfg.Polled && !slices.Contains(app.Events, name) {
			list = append(list, doctor.Finding{
				What: "GitHub: the App does not subscribe to " + name, Why: "Its events do not arrive.",
				Remedy: "Subscribe to it in the settings of the App, under Permissions & events.",
			})
		}
	}
	list = append(list, f.diagnoseInstallations(ctx, app)...)
	if f.cfg.Polled {
		return append(list, doctor.Finding{What: "GitHub is polled: webhooks are not needed"})
	}
	list = append(list, f.diagnoseHook(ctx)...)
	return append(list, f.diagnoseDeliveries(ctx)...)
}

// grantedApp and grantedInstallation have all permissions by name; go-github does not know all of them. A level that
// GitHub did not report is absent.
type (
	grantedApp struct {
		github.App
		Permissions map[string]string `json:"permissions"`
	}
	grantedInstallation struct {
		github.Installation
		Permissions map[string]string `json:"permissions"`
	}
)

// get reads what the App itself may.
func (f *Forge) get(ctx context.Context, path string, into any) (*github.Response, error) {
	req, err := f.clients.own.NewRequest(http.MethodGet, path, nil)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	return f.clients.own.Do(ctx, req, into)
}

// diagnoseInstallations reports missing and suspended installations, and those that have not accepted new permissions.
func (f *Forge) diagnoseInstallations(ctx context.Context, app grantedApp) (list []doctor.Finding) {
	var all []grantedInstallation
	if _, err := f.get(ctx, "app/installations?per_page=100", &all); err != nil {
		return []doctor.Finding{unreadable("where the App is installed", err)}
	}
	if len(all) == 0 {
		return []doctor.Finding{{
			What: "GitHub: the App is installed nowhere", Why: "It sees no repository.", Fatal: true,
			Remedy: "Install it at " + app.GetHTMLURL() + ", on the repositories that errand works on.",
		}}
	}
	for _, one := range all {
		at := one.GetAccount().GetLogin()
		if !one.GetSuspendedAt().IsZero() {
			list = append(list, doctor.Finding{
				What: "GitHub: the installation at " + at + " is suspended",
				Why:  "errand cannot access its repositories.", Remedy: "Unsuspend it at " + one.GetHTMLURL() + ".",
			})
			continue
		}
		has := map[string]string{}
		maps.Copy(has, one.Permissions)
		for _, p := range permissions() {
			if app.Permissions[p.name] != p.level {
				has[p.name] = p.level // already reported for the App
			}
		}
		list = append(list, missingPermissions("the installation at "+at, has, "Accept the App's new permissions at "+
			one.GetHTMLURL()+".")...)
		list = append(list, doctor.Finding{What: "GitHub: installed at " + at})
	}
	return list
}

// unreadable is the finding for one call that failed.
func unreadable(what string, err error) doctor.Finding {
	return doctor.Finding{
		What: "GitHub did not say " + what, Why: err.Error(), Remedy: "Check GitHub's status page, and try again.",
	}
}

// diagnoseHook checks the webhook of the App. GitHub reports only whether it has a secret.
func (f *Forge) diagnoseHook(ctx context.Context) (list []doctor.Finding) {
	hook, _, err := f.clients.own.Apps.GetHookConfig(ctx)
	if err != nil {
		return []doctor.Finding{unreadable("where the App's webhooks go", err)}
	}
	const general = " in the settings of the App, under Webhook."
	if u, err := url.Parse(hook.GetURL()); err != nil || !strings.HasSuffix(u.Path, HookPath) {
		list = append(list, doctor.Finding{
			What:   fmt.Sprintf("GitHub: webhooks go to %q", hook.GetURL()),
			Why:    "Unless that URL forwards them, no event arrives.",
			Remedy: "Set the URL to errand's, which ends in " + HookPath + "," + general,
		})
	}
	if hook.GetSecret() == "" {
		list = append(list, doctor.Finding{
			What: "GitHub: webhooks are not signed", Why: "No event is accepted.", Fatal: true,
			Remedy: "Set the secret to the value of GITHUB_WEBHOOK_SECRET" + general,
		})
	}
	if hook.GetInsecureSSL() == "1" {
		list = append(list, doctor.Finding{
			What: "GitHub: webhooks are sent without certificate verification",
			Why:  "Others could read them in transit.", Remedy: "Enable SSL verification" + general,
		})
	}
	return list
}

// diagnoseDeliveries reports how the latest webhooks were answered. GitHub does not repeat those that failed.
func (f *Forge) diagnoseDeliveries(ctx context.Context) []doctor.Finding {
	all, _, err := f.clients.own.Apps.ListHookDeliveries(ctx, &github.ListCursorOptions{PerPage: 50})
	if err != nil {
		return []doctor.Finding{unreadable("how webhooks were answered", err)}
	}
	if len(all) == 0 {
		return []doctor.Finding{{What: "GitHub has sent no webhook recently"}}
	}
	accepted := func(d *github.HookDelivery) bool { return d.GetStatusCode()/100 == 2 }
	delivered := map[string]bool{} // accepted, perhaps after a redelivery
	for _, d := range all {
		delivered[d.GetGUID()] = delivered[d.GetGUID()] || accepted(d)
	}
	lost := slices.DeleteFunc(slices.Clone(all), func(d *github.HookDelivery) bool { return delivered[d.GetGUID()] })
	if len(lost) == 0 {
		return []doctor.Finding{{What: fmt.Sprintf("GitHub: the last %d webhooks were accepted", len(all))}}
	}
	last := lost[0] // the newest comes first
	c := doctor.Finding{
		What: fmt.Sprintf("GitHub: %d of the last %d webhooks were not accepted", len(lost), len(all)),
		Why: fmt.Sprintf("The last of them, %s at %s UTC: %s. GitHub does not send them again by itself.",
			last.GetEvent(), last.GetDeliveredAt().UTC().Format(time.DateTime), last.GetStatus()),
		Remedy: "Redeliver them in the settings of the App, under Advanced.",
	}
	// Rejected or unreachable, and not just an outage that has passed.
	if !accepted(all[0]) && all[0].GetStatusCode() < 500 {
		c.Fatal, c.Remedy = true,
			"Compare its URL and its secret, GITHUB_WEBHOOK_SECRET, with errand's; then redeliver them in the "+
				"settings of the App, under Advanced."
	}
	return []doctor.Finding{c}
}
