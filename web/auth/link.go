package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// linkParam is the parameter of a signed link, and linkCookie what a browser gets instead. Its path is that of the
// task, so that several tasks can be open.
const (
	linkParam  = "link"
	linkCookie = "errand_link"
)

// Links signs links that open one task read-only for some days without a login.
type Links struct {
	Key  []byte // secret; the same in all processes of the fleet
	Days int
}

// URL returns the address of a task's page at the console, signed unless l is nil. It is always the same for a task,
// because messages that contain it are edited.
func (l *Links) URL(base, id string) string {
	to := base + "/tasks/" + id
	if l == nil || base == "" {
		return to
	}
	until := tasks.Born(id).AddDate(0, 0, l.Days).Unix()
	return to + "?" + linkParam + "=" + l.sign(id, strconv.FormatInt(until, 10))
}

// sign returns the end of a link's time and the signature.
func (l *Links) sign(id, until string) string {
	mac := hmac.New(sha256.New, l.Key)
	_, _ = mac.Write([]byte(id + "\n" + until)) // a hash never fails
	return until + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// opens reports whether a signed value opens a task now, and until when.
func (l *Links) opens(id, value string, now time.Time) (end time.Time, ok bool) {
	if l == nil {
		return end, false
	}
	until, _, _ := strings.Cut(value, ".")
	seconds, err := strconv.ParseInt(until, 10, 64)
	// A link that was made for more days than are set now ends with these.
	end = time.Unix(min(seconds, tasks.Born(id).AddDate(0, 0, l.Days).Unix()), 0)
	return end, err == nil && now.Before(end) && hmac.Equal([]byte(l.sign(id, until)), []byte(value))
}

// linked returns the task that the path of a request is about, or "".
func linked(r *http.Request) string {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(r.URL.Path, "/api"), "/tasks/")
	id, _, _ := strings.Cut(rest, "/")
	if !ok || !tasks.ValidID(id) {
		return ""
	}
	return id
}

// guest returns the visitor whose browser was at a signed link of the task that the request is about.
func (g *Guard) guest(r *http.Request) (people.Visitor, bool) {
	id := linked(r)
	for _, c := range r.CookiesNamed(linkCookie) {
		if end, ok := g.Links.opens(id, c.Value, g.Now()); ok && id != "" {
			return people.Visitor{Name: "guest", Method: byLink, Role: policy.Guest, Task: id, Until: end}, true
		}
	}
	return people.Visitor{}, false
}

// openLink takes the signature out of the address, and gives the browser a cookie for it if it is valid. A visitor who
// is logged in keeps their role: this request may only lack their cookie because it comes from another site.
func (g *Guard) openLink(w http.ResponseWriter, r *http.Request) {
	id, query := linked(r), r.URL.Query()
	if end, ok := g.Links.opens(id, query.Get(linkParam), g.Now()); ok {
		for _, path := range []string{"/tasks/" + id, "/api/tasks/" + id} {
			setCookie(w, r, http.Cookie{
				Name: linkCookie, Value: query.Get(linkParam), Path: path, MaxAge: int(end.Sub(g.Now()).Seconds()),
				SameSite: http.SameSiteStrictMode,
			})
		}
	}
	query.Del(linkParam)
	to := *r.URL
	to.RawQuery = query.Encode()
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has the signature
	if err := g.comeAgain(w, r, http.StatusOK, local(&to)); err != nil {
		g.Out.Fail(w, r, err)
	}
}
