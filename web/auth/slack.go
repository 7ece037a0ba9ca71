package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/rights"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// LinkPath is where people link their account in Slack to their account at GitHub. An address with a code of
// [desk.Desk.OfferLink] works in the first browser that opens it with a login at GitHub, and once.
const LinkPath = "/link"

// codeParam is the parameter of a link's address.
const codeParam = "code"

// linkView is the page on which people confirm a link.
type linkView struct {
	people.Link        // Login is that of the visitor; empty if they have to log in first
	Code        string // of the offer
	Proof       string // that the form is for this browser
	Start       string // where people log in
	Done        bool   // the link is made
}

var errNoOffer = respond.Error(http.StatusNotFound, "This link does not work",
	"It was used before, or it is older than 10 minutes. Say /errand link in Slack to get a new one.")

// LinkPage shows whose account in Slack the visitor is about to link. The offer is then bound to their session.
func (g *Guard) LinkPage(w http.ResponseWriter, r *http.Request) error {
	code := r.URL.Query().Get(codeParam)
	b, ok, err := g.atGitHub(r)
	if err != nil {
		return err
	}
	v := linkView{Code: code, Start: "/login/start?" + url.Values{"next": {local(r.URL)}}.Encode()}
	if !ok {
		v.Link, _, err = g.offer(r.Context(), g.Store.Logins.Read, people.OfferHash(code))
	} else {
		v.Proof = g.linkProof(b, code)
		if v.Link, _, err = g.offer(r.Context(), g.Store.Logins.Read, v.Proof); errors.Is(err, errNoOffer) {
			var body json.RawMessage
			if v.Link, body, err = g.offer(r.Context(), g.Store.Logins.Take, people.OfferHash(code)); err == nil {
				err = g.Store.Logins.Save(r.Context(), v.Proof, body, people.OfferTime)
			}
		}
	}
	if err != nil {
		return err
	}
	if ok {
		v.Login = b.Login
	}
	return g.Out.Page(w, r, http.StatusOK, "link", v)
}

// ConfirmLink makes the link that LinkPage has shown in the same browser.
func (g *Guard) ConfirmLink(w http.ResponseWriter, r *http.Request) error {
	boundForm(w, r)
	b, ok, err := g.atGitHub(r)
	if err != nil {
		return err
	}
	// without a session, the form is not read
	if !ok || !equal(r.PostFormValue("proof"), g.linkProof(b, r.PostFormValue(codeParam))) {
		return respond.Error(http.StatusForbidden, "Not confirmed",
			"Open the address that /errand link has given you, log in to GitHub, and confirm there.")
	}
	l, _, err := g.offer(r.Context(), g.Store.Logins.Take, r.PostFormValue("proof"))
	if err != nil {
		return err
	}
	l.Login, l.ID, l.Until = b.Login, b.ID, g.Now().Add(people.LinkTime).UTC()
	others, err := rights.ListLinks(r.Context(), g.Store.Links)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("link slack/%s to github/%s", l.User, l.Login)
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("marshal link: %w", err)
	}
	why := g.Access.People.MayLink(l, others).Reason
	if why == "" {
		err = g.Store.Links.Link(r.Context(), l.User, l.Login, body)
	}
	if errors.Is(err, store.ErrStale) {
		why, err = l.Login+" was linked to another account in Slack a moment ago.", nil
	}
	if err != nil {
		return err
	}
	if why != "" {
		g.Audit.record(r, b.visitor, what, http.StatusConflict, "")
		return respond.Error(http.StatusConflict, "Not linked", why)
	}
	g.Audit.record(r, b.visitor, what, http.StatusOK, "")
	return g.Out.Page(w, r, http.StatusOK, "link", linkView{Link: l, Done: true})
}

// atGitHub returns a browser whose person has logged in at GitHub, which has stated their account.
func (g *Guard) atGitHub(r *http.Request) (b browser, ok bool, err error) {
	b, ok, err = g.browser(r)
	return b, ok && b.Method == byLogin && g.Provider != nil && g.Provider.GitHub != "" &&
		b.Login != "" && b.ID != 0, err
}

// linkProof is the name of an offer that is bound to a browser. Only that browser's page has it.
func (g *Guard) linkProof(b browser, code string) string { return g.sign("link", b.id+"\n"+code) }

// offer reads an offer.
func (g *Guard) offer(
	ctx context.Context, read func(context.Context, string) (json.RawMessage, error), name string,
) (l people.Link, body json.RawMessage, err error) {
	body, err = read(ctx, name)
	if errors.Is(err, store.ErrNotFound) || err == nil && (json.Unmarshal(body, &l) != nil || l.User == "" ||
		!g.Now().Before(l.Until)) {
		err = errNoOffer
	}
	return l, body, err
}

// linking reports whether a login leads to an offer: people may link their accounts without a role.
func (g *Guard) linking(ctx context.Context, next string) bool {
	u, err := url.Parse(next)
	if err != nil || u.Path != LinkPath || g.Provider.GitHub == "" {
		return false
	}
	_, _, err = g.offer(ctx, g.Store.Logins.Read, people.OfferHash(u.Query().Get(codeParam)))
	return err == nil
}
