package assemble

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks/desk"
)

// command gives a slash command and returns what only the person sees.
func (w *rightsWorld) command(user, text string) string {
	w.Helper()
	before := len(w.slack.Ephemeral(theirs, user))
	if err := w.slack.Command(w.Context(), user, theirs, "/errand", text); err != nil {
		w.Fatal(err)
	}
	var said []slackfake.Message
	if err := w.slack.Wait(w.Context(), func(s *slackfake.Server) bool {
		said = s.Ephemeral(theirs, user)
		return len(said) > before
	}); err != nil {
		w.Fatal(err)
	}
	return said[len(said)-1].Text
}

var (
	linkAddress = regexp.MustCompile(`http\S+/link\?code=(\w+)`)
	loginStart  = regexp.MustCompile(`href="(/login/start[^"]*)"`)
	linkProof   = regexp.MustCompile(`name="proof" value="([^"]*)"`)
)

// link says /errand link as a user, logs in at GitHub as a person, and confirms.
func (w *rightsWorld) link(user, login string) *http.Client {
	w.Helper()
	said := w.command(user, "link")
	address := linkAddress.FindStringSubmatch(said)
	if address == nil || !strings.HasPrefix(address[0], w.base) {
		w.Fatalf("no address: %s", said)
	}
	w.github.RegisterOAuth(w.oauth, githubfake.Person{Login: login, Email: login + "@acme.test"})
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	text := func(resp *http.Response) string {
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			w.Fatalf("%s: %s %v", resp.Request.URL, resp.Status, err)
		}
		return string(body)
	}
	page := "/link?code=" + address[1]
	start := loginStart.FindStringSubmatch(text(w.request(client, http.MethodGet, page, "", "")))
	if start == nil {
		w.Fatal("the page leads to no login")
	}
	text(w.request(client, http.MethodGet, html.UnescapeString(start[1]), "", ""))
	proof := linkProof.FindStringSubmatch(text(w.request(client, http.MethodGet, page, "", "")))
	if proof == nil {
		w.Fatal("the page has no form")
	}
	resp, err := client.PostForm(w.base+"/link", url.Values{"code": {address[1]}, "proof": {proof[1]}})
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text(resp)
	return client
}

// People who have linked their account run with their rights on GitHub, as long as they are linked, and are one person
// wherever they ask.
func TestLinkedPeople(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t, "slack: {link: true}")
	w.slack.Commands(w.base + "/slack/commands")
	w.github.SetPermission(secret, "dana", "write")
	w.github.SetPermission(secret, "eve", "write")
	if said := w.command("U0P2", "link"); said != "An operator has set your account on GitHub: p2." {
		t.Errorf("a person of the operator's: %s", said)
	}
	dana := w.link("U0DANA", "dana")
	w.link("U0EVE", "eve")
	w.say(theirs, "U0DANA", "linked request.")
	w.comment(secret, "dana", "linked comment.")
	if !w.chat(dana, "", "linked chat.") {
		t.Error("the console refuses a person who may write")
	}
	w.say(theirs, "U0EVE", "unlinked meanwhile.")
	w.say(theirs, "U0FAY", "never linked.")
	if said := w.command("U0EVE", "unlink"); said != "Your account in Slack is no longer linked to your account on GitHub." {
		t.Errorf("unlink: %s", said)
	}
	if said := w.command("U0EVE", "unlink"); said != "Your account is not linked." {
		t.Errorf("unlink again: %s", said)
	}
	w.work()
	for _, request := range []string{"linked request.", "linked comment.", "linked chat."} {
		if profile, why := w.outcome(t, request); profile != agent.Write {
			t.Errorf("%s profile %q, refused %q", request, profile, why)
		}
	}
	for _, request := range []string{"unlinked meanwhile.", "never linked."} {
		if profile, why := w.outcome(t, request); profile != "" || !strings.Contains(why, "Say /errand link") {
			t.Errorf("%s profile %q, refused %q", request, profile, why)
		}
	}
	if l, err := w.door.Desk.List(t.Context(), desk.Filter{Person: "github/dana"}); err != nil || len(l.Tasks) != 3 {
		t.Errorf("dana has %d tasks, %v", len(l.Tasks), err)
	}
	resp := w.request(http.DefaultClient, http.MethodGet, "/api/audit?what=link", consoleToken, "")
	audit, err := io.ReadAll(resp.Body)
	for _, entry := range []string{
		`"what": "offer link"`, `"what": "link slack/U0DANA to github/dana"`, `"what": "unlink"`,
		`"who": "slack/U0EVE"`,
	} {
		if err != nil || !strings.Contains(string(audit), entry) {
			t.Errorf("the audit log has no %s: %s %v", entry, audit, err)
		}
	}
	if said := w.command("U0DANA", "status"); !strings.Contains(said, "Linked") {
		t.Errorf("status: %s", said)
	}
}

// Without slack.link, people have to ask an operator.
func TestLinkingIsOff(t *testing.T) {
	t.Parallel()
	w := newRightsWorld(t, "")
	w.slack.Commands(w.base + "/slack/commands")
	if said := w.command("U0DANA", "link"); !strings.HasPrefix(said, "Linking is not available here.") {
		t.Errorf("link: %s", said)
	}
}
