package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Without the token there is the form and nothing else; with it, the page that was wanted.
func TestLogin(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	tb := newTab(t, c.base)
	tb.allow("status of 401")
	tb.open("/health")
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
	tb.find("h1", "Health")
	if cookies := eval[string](tb, "document.cookie"); cookies != "" {
		t.Errorf("scripts can read %s", cookies)
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

	other := newTab(t, c.base)
	other.scripts(false)
	other.allow("status of 401")
	other.open("/login?next=/health")
	other.do(sendKeys("input[name=token]", token))
	other.leave("main button")
	other.shows("Health")
}
