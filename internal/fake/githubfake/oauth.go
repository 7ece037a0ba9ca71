package githubfake

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// userCaller is a person who has logged in at an OAuth app.
const userCaller = "user"

// OAuthApp is the one OAuth app that is registered.
type OAuthApp struct {
	ClientID, Secret string
	Redirect         string // the callback address
}

// Person is an account that logs in at the OAuth app.
type Person struct {
	Login      string
	Email      string // primary
	Unverified bool   // the e-mail address
	Orgs       []string
	Teams      []string // organisation/slug
}

// oauth is the state of logins.
type oauth struct {
	app    OAuthApp
	person Person
	codes  map[string]session
	tokens map[string]session
}

// session is what a code or a token gives access to.
type session struct {
	person    Person
	scopes    []string
	challenge string
}

// RegisterOAuth sets the OAuth app and who logs in there from now on. GitHub asks them for nothing.
func (s *Server) RegisterOAuth(app OAuthApp, p Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oauth = oauth{app: app, person: p, codes: map[string]session{}, tokens: map[string]session{}}
}

// OAuthTokens returns the tokens of people that were handed out.
func (s *Server) OAuthTokens() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token := range s.oauth.tokens {
		all = append(all, token)
	}
	return all
}

func (s *Server) oauthRoutes() {
	handle(&s.web, "GET /login/oauth/authorize", s.authorize)
	handle(&s.web, "POST /login/oauth/access_token", s.exchange)
	for path, scope := range map[string]string{"emails": "user:email", "orgs": "read:org", "teams": "read:org"} {
		s.api("GET /user/"+path, "", func(r *request) reply {
			who, ok := s.oauth.tokens[r.who.secret]
			if !ok || !slices.Contains(who.scopes, scope) {
				return fail(404, "Not Found") // as GitHub hides what a token has no scope for
			}
			return s.ofPerson(r, path, who.person)
		})
	}
}

// ofPerson lists what GitHub knows of the person who logged in.
func (s *Server) ofPerson(r *request, what string, p Person) reply {
	switch what {
	case "emails":
		return ok([]object{
			{"email": p.Login + "@users.noreply.github.com", "primary": false, "verified": true, "visibility": nil},
			{"email": p.Email, "primary": true, "verified": !p.Unverified, "visibility": "private"},
		})
	case "orgs":
		return listing(s, r, p.Orgs, func(org string) object { return object{"login": org} })
	}
	return listing(s, r, p.Teams, func(team string) object {
		org, slug, _ := strings.Cut(team, "/")
		return object{"slug": slug, "name": slug, "organization": object{"login": org}}
	})
}

// authorize sends the browser back with a code. GitHub does not require PKCE; the fake does, to notice a client that
// stops using it.
func (s *Server) authorize(w http.ResponseWriter, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := r.URL.Query()
	app := s.oauth.app
	if app.ClientID == "" || q.Get("client_id") != app.ClientID || q.Get("redirect_uri") != app.Redirect {
		http.Error(w, "unknown client or redirect address", http.StatusNotFound)
		return
	}
	if q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("state") == "" {
		http.Error(w, "state or PKCE is missing", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	s.oauth.codes[code] = session{
		person: s.oauth.person, scopes: strings.Fields(q.Get("scope")), challenge: q.Get("code_challenge"),
	}
	w.Header().Set("Location", app.Redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode())
	w.WriteHeader(http.StatusFound)
}

// exchange gives a token for a code. GitHub answers 200 also when it refuses, and writes a form unless it is asked for
// JSON. The client's credentials are in the body, as GitHub documents it.
func (s *Server) exchange(w http.ResponseWriter, r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	form, err := url.ParseQuery(string(r.body))
	app := s.oauth.app
	got, known := s.oauth.codes[form.Get("code")]
	sum := sha256.Sum256([]byte(form.Get("code_verifier")))
	answer := url.Values{}
	switch {
	case err != nil, app.ClientID == "", form.Get("client_id") != app.ClientID, form.Get("client_secret") != app.Secret:
		answer.Set("error", "incorrect_client_credentials")
	case form.Get("redirect_uri") != app.Redirect:
		answer.Set("error", "redirect_uri_mismatch")
	case !known, base64.RawURLEncoding.EncodeToString(sum[:]) != got.challenge:
		answer.Set("error", "bad_verification_code")
	default:
		delete(s.oauth.codes, form.Get("code"))
		token := "gho_" + rand.Text()
		s.oauth.tokens[token] = got
		answer = url.Values{"access_token": {token}, "token_type": {"bearer"}, "scope": {strings.Join(got.scopes, ",")}}
	}
	if !strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		_, _ = w.Write([]byte(answer.Encode()))
		return
	}
	flat := map[string]string{}
	for name := range answer {
		flat[name] = answer.Get(name)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(flat)
}
