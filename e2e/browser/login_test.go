package browser

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
)

// Without the token there is the form and nothing else; with it, the page that was wanted.
func TestLogin(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	tb := newTab(t, c.base)
	tb.allow("status of 401")
	tb.open("/fleet")
	tb.wait("location.pathname === '/login'") // by the page on the way
	for _, l := range looks {
		tb.as(l)
		tb.fits("login")
		tb.accessible("login")
		tb.keep(out+"/login-"+l.name+".png", tb.shoot(true))
	}
	tb.do(sendKeys("input[name=token]", "wrong\n"))
	tb.find("main", "This token is wrong.")
	tb.accessible("login, refused")
	tb.do(sendKeys("input[name=token]", token+"\n"))
	tb.find("h1", "Fleet")
	if cookies := eval[string](tb, "document.cookie"); cookies != "" {
		t.Errorf("scripts can read %s", cookies)
	}
	for _, l := range looks {
		tb.as(l)
		tb.press(".user summary")
		tb.find(".user .menu", "Role: admin")
		tb.fits("menu")
		tb.accessible("menu")
		tb.keep(out+"/menu-"+l.name+".png", tb.shoot(false))
		tb.press(".user summary")
	}

	// A link in Slack is from another site: the request has no cookie, and still leads to the page.
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><a href="%s/?state=ended">the tasks</a>`, c.base)
	}))
	defer elsewhere.Close()
	tb.allow("request to elsewhere: http://localhost")
	tb.open(strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1))
	tb.press("a")
	tb.find(".tabs [aria-current]", "ended")
	tb.press(".user summary")
	tb.press(".user .menu button")
	tb.wait("location.pathname === '/login'")
	tb.open("/fleet")
	tb.wait("location.pathname === '/login'")

	other := newTab(t, c.base)
	other.scripts(false)
	other.allow("status of 401")
	other.open("/login?next=/fleet")
	other.do(sendKeys("input[name=token]", token))
	other.leave("main button")
	other.shows("Fleet")
}

// Where people log in at a provider, its button comes first and the token is folded away.
func TestLoginWithProvider(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "errand.yaml")
	content := "login: {issuer: https://id.acme.example, client_id: errand}\nroles: [{role: viewer, people: ['*']}]\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newConsole(t, "ERRAND_CONFIG="+file, "ERRAND_LOGIN_SECRET=a-secret-of-the-client",
		"ERRAND_PUBLIC_URL=https://errand.acme.example")
	tb := newTab(t, c.base)
	tb.allow("status of 401")
	tb.allow("status of 404") // the task, at the end
	for _, l := range looks {
		tb.as(l)
		tb.open("/login?next=/tasks/1700000000000000-chat-x")
		tb.find(".button.first", "Log in with id.acme.example")
		tb.fits("login with provider")
		tb.accessible("login with provider")
		tb.keep(out+"/login-provider-"+l.name+".png", tb.shoot(true))
	}
	tb.press(".other summary")
	tb.do(sendKeys("input[name=token]", "wrong\n"))
	tb.find("main", "This token is wrong.")
	tb.wait("document.querySelector('.other').open")
	tb.do(sendKeys("input[name=token]", token+"\n"))
	tb.find("h1", "No such task")
}

// The visitor of a signed link sees one task live, with nothing on the page that would refuse them.
func TestGuest(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	s := newScene(c)
	fleetToken := hex.EncodeToString(signed([]byte(c.client.Options().Password), "errand fleet token"))
	key := signed([]byte(fleetToken), "errand task links")
	for _, v := range []struct{ name, id, want string }{
		{"running", s.running, "faketime"},
		{"asking", s.asking, "The agent asks"},
		{"answered", s.answered, "truncates"},
		{"failed", s.failed, "credit balance"},
		{"waiting", s.waiting, "Waiting"},
	} {
		s.log(v.id, "the log of the run\n")
		tb := newTab(t, s.base)
		tb.allow("status of 401")
		until := strconv.FormatInt(time.Now().AddDate(0, 0, 7).Unix(), 10)
		tb.open("/tasks/" + v.id + "?link=" + until + "." +
			base64.RawURLEncoding.EncodeToString(signed(key, v.id+"\n"+until)[:16]))
		tb.wait("!location.search && document.readyState === 'complete'") // by the page on the way
		tb.find("main", v.want)
		tb.find(".banner.guest", "You see this task through a shared link, which works until ")
		if buttons := eval[string](tb,
			"[...document.querySelectorAll('form, .top nav, .user .menu')].map((e) => e.outerHTML).join()"); buttons != "" {
			t.Errorf("%s: a guest cannot use %s", v.name, buttons)
		}
		dead := eval[string](tb, `(async () => {
			const dead = [];
			for (const href of new Set([...document.querySelectorAll("a[href]")].map((a) => a.href))) {
				const url = new URL(href);
				if (url.origin !== location.origin || url.pathname === "/login" || url.pathname === location.pathname) continue;
				const answer = await fetch(href, { headers: { Accept: "text/html" } });
				await answer.body.cancel();
				if (!answer.ok) dead.push(answer.status + " " + url.pathname);
			}
			return dead.join();
		})()`)
		if dead != "" {
			t.Errorf("%s: links lead nowhere: %s", v.name, dead)
		}
		for _, l := range looks {
			tb.as(l)
			tb.fits("guest")
			tb.accessible("guest")
			tb.keep(out+"/guest-"+v.name+"-"+l.name+".png", tb.shoot(true))
		}
		if v.id == s.running {
			s.live(tb)
		}
		tb.open("/")
		tb.wait("location.pathname === '/login'")
		tb.check()
	}
}

func signed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// live sees a new event of the running task appear on its open page.
func (s *scene) live(tb *tab) {
	tb.Helper()
	tb.find("#timeline.live", "faketime")
	s.Append(s.claim, agent.Event{Kind: agent.Text, Text: "It is the week that truncates.", Time: time.Now()})
	tb.find("#timeline", "It is the week that truncates.")
}
