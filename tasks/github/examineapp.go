package github

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/tasks"
)

// examineApp asks as which App we are known, where it is installed, and how its webhooks fare.
func (s *Source) examineApp(ctx context.Context) []tasks.Check {
	app, resp, err := s.clients.own.Apps.Get(ctx, "")
	if err != nil {
		key := "Compare GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY_FILE with the settings of the App, or make a new key there."
		return append([]tasks.Check{unanswered(err, "what the App signs", key)}, s.clock(resp)...)
	}
	const settings = "Add it in the settings of the App, and accept it where the App is installed."
	list := []tasks.Check{{What: fmt.Sprintf("GitHub knows us as the App %s (%d)", app.GetSlug(), app.GetID())}}
	list = append(list, s.clock(resp)...)
	has := levels(app.GetPermissions())
	list = append(list, lacks("the App", has, settings)...)
	if has["workflows"] != "" {
		list = append(list, workflows("the App has the permission workflows", "Take it away in the settings of the App."))
	}
	for _, name := range events() {
		if !slices.Contains(app.Events, name) {
			list = append(list, tasks.Check{
				What: "GitHub: the App does not subscribe to " + name, Why: "What it brings is not heard.",
				Remedy: "Subscribe to it in the settings of the App, under Permissions & events.",
			})
		}
	}
	list = append(list, s.examineInstallations(ctx, app)...)
	list = append(list, s.examineHook(ctx)...)
	return append(list, s.examineDeliveries(ctx)...)
}

// levels are permissions by name. A level that GitHub did not tell is absent.
func levels(p *github.InstallationPermissions) map[string]string {
	text, _ := json.Marshal(p) // of strings
	all := map[string]string{}
	_ = json.Unmarshal(text, &all)
	return all
}

// examineInstallations looks whether there is one, and whether those who installed the App have accepted what it has come to need.
func (s *Source) examineInstallations(ctx context.Context, app *github.App) (list []tasks.Check) {
	all, _, err := s.clients.own.Apps.ListInstallations(ctx, &github.ListOptions{PerPage: 100})
	if err != nil {
		return []tasks.Check{untold("where the App is installed", err)}
	}
	if len(all) == 0 {
		return []tasks.Check{{
			What: "GitHub: the App is installed nowhere", Why: "It sees no repository.", Fatal: true,
			Remedy: "Install it at " + app.GetHTMLURL() + ", on the repositories that errand works on.",
		}}
	}
	wanted := levels(app.GetPermissions())
	for _, one := range all {
		at := one.GetAccount().GetLogin()
		if !one.GetSuspendedAt().IsZero() {
			list = append(list, tasks.Check{
				What: "GitHub: the installation at " + at + " is suspended", Why: "Its repositories are not seen.", Remedy: "Unsuspend it at " + one.GetHTMLURL() + ".",
			})
			continue
		}
		has := levels(one.GetPermissions())
		for _, p := range permissions() {
			if wanted[p.name] != p.level {
				has[p.name] = p.level // told of the App already
			}
		}
		list = append(list, lacks("the installation at "+at, has, "Accept the App's new permissions at "+one.GetHTMLURL()+".")...)
		list = append(list, tasks.Check{What: "GitHub: installed at " + at})
	}
	return list
}

// untold is what GitHub did not answer although it knows us.
func untold(what string, err error) tasks.Check {
	return tasks.Check{What: "GitHub did not tell " + what, Why: err.Error(), Remedy: "Look at GitHub's state, and ask again."}
}

// examineHook looks at the webhook of the App. Of the secret GitHub tells only that there is one.
func (s *Source) examineHook(ctx context.Context) (list []tasks.Check) {
	hook, _, err := s.clients.own.Apps.GetHookConfig(ctx)
	if err != nil {
		return []tasks.Check{untold("where the App's webhooks go", err)}
	}
	const general = " in the settings of the App, under Webhook."
	if u, err := url.Parse(hook.GetURL()); err != nil || !strings.HasSuffix(u.Path, hookPath) {
		list = append(list, tasks.Check{
			What: fmt.Sprintf("GitHub: webhooks go to %q", hook.GetURL()), Why: "Unless that address passes them on, no event is heard.",
			Remedy: "Set the address to that of the front door, which ends in " + hookPath + "," + general,
		})
	}
	if hook.GetSecret() == "" {
		list = append(list, tasks.Check{
			What: "GitHub: webhooks are not signed", Why: "No event is heard.", Fatal: true, Remedy: "Set the secret, the same as GITHUB_WEBHOOK_SECRET," + general,
		})
	}
	if hook.GetInsecureSSL() == "1" {
		list = append(list, tasks.Check{
			What: "GitHub: webhooks are sent without a look at the certificate", Why: "Others could read them on their way.", Remedy: "Enable SSL verification" + general,
		})
	}
	return list
}

// examineDeliveries looks how the latest webhooks were answered. GitHub does not repeat those that failed.
func (s *Source) examineDeliveries(ctx context.Context) []tasks.Check {
	all, _, err := s.clients.own.Apps.ListHookDeliveries(ctx, &github.ListCursorOptions{PerPage: 50})
	if err != nil {
		return []tasks.Check{untold("how webhooks were answered", err)}
	}
	if len(all) == 0 {
		return []tasks.Check{{What: "GitHub has sent no webhook lately"}}
	}
	taken := func(d *github.HookDelivery) bool { return d.GetStatusCode()/100 == 2 }
	again := map[string]bool{} // taken, if not at once
	for _, d := range all {
		again[d.GetGUID()] = again[d.GetGUID()] || taken(d)
	}
	lost := slices.DeleteFunc(slices.Clone(all), func(d *github.HookDelivery) bool { return again[d.GetGUID()] })
	if len(lost) == 0 {
		return []tasks.Check{{What: fmt.Sprintf("GitHub: the last %d webhooks were taken", len(all))}}
	}
	last := lost[0] // the newest comes first
	c := tasks.Check{
		What: fmt.Sprintf("GitHub: %d of the last %d webhooks were not taken", len(lost), len(all)),
		Why: fmt.Sprintf("The last of them, %s at %s UTC: %s. GitHub does not send them again by itself.",
			last.GetEvent(), last.GetDeliveredAt().UTC().Format(time.DateTime), last.GetStatus()),
		Remedy: "Redeliver them in the settings of the App, under Advanced.",
	}
	// Refused or not reached, and not just an outage that has passed.
	if !taken(all[0]) && all[0].GetStatusCode() < 500 {
		c.Fatal, c.Remedy = true, "Compare its address and its secret, GITHUB_WEBHOOK_SECRET, with errand's; then redeliver them in the settings of the App, under Advanced."
	}
	return []tasks.Check{c}
}
