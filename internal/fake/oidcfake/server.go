// Package oidcfake is an OpenID provider for tests: discovery, the authorization code flow with PKCE, ID tokens signed
// with RS256, keys that rotate, and user info, as real HTTP on loopback.
//
// It refuses what a provider refuses: an unknown client, a wrong secret, a redirect address that is not registered, a
// request without state, nonce or S256 challenge, and a code that was used, or comes with another verifier or address.
// It asks no one for a password: whoever LogIn names is logged in. Tests replace the ID token (Answer) to send what an
// attacker or a broken provider sends.
//
// A Server may be used from any number of goroutines.
package oidcfake

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// The one client that is registered.
const (
	ClientID = "errand"
	Secret   = "the-clients-secret-0123456789"
)

// Claims are what an ID token or the user info says.
type Claims = map[string]any

// Server is a provider. Create one with New.
type Server struct {
	URL string // the issuer

	mu       sync.Mutex
	redirect string // the registered address
	person   Claims // who logs in; nil: they refuse
	info     Claims // what only the user info says
	key      Key
	keys     int
	answer   func(Claims, Key) string
	status   int // of every answer; 0: as it should be
	codes    map[string]grant
	tokens   map[string]Claims // user info by access token
	secrets  []string
	refusals []string
}

// grant is what a code means.
type grant struct {
	challenge, nonce string
	person, info     Claims
	used             bool
}

// New starts a provider, which ends with the test.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{codes: map[string]grant{}, tokens: map[string]Claims{}}
	s.Rotate()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", s.discover)
	mux.HandleFunc("GET /keys", s.publish)
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /token", s.token)
	mux.HandleFunc("GET /userinfo", s.userInfo)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.status != 0 {
			w.WriteHeader(s.status)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	tb.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Register sets the client's redirect address.
func (s *Server) Register(redirect string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.redirect = redirect
}

// LogIn sets who logs in from now on, and what only the user info says of them. Claims must have a sub; nil refuses.
func (s *Server) LogIn(claims, info Claims) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.person, s.info = maps.Clone(claims), maps.Clone(info)
}

// Answer replaces how ID tokens are made of the claims that they should have; nil: as they should be.
func (s *Server) Answer(token func(Claims, Key) string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = token
}

// Fail makes every answer an error with a status, or with 0 as it should be again.
func (s *Server) Fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status = status
}

// Rotate replaces the signing key. The old one, which it returns, is withdrawn.
func (s *Server) Rotate() (old Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, s.keys = s.key, s.keys+1
	s.key = NewKey("key-" + strconv.Itoa(s.keys))
	return old
}

// Secrets returns all codes, verifiers and tokens so far, and the client's secret.
func (s *Server) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append(slices.Clone(s.secrets), Secret)
}

// Refusals returns why requests were refused.
func (s *Server) Refusals() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.refusals)
}

// Key signs ID tokens.
type Key struct {
	ID      string
	Private *rsa.PrivateKey
}

// NewKey makes a key. Its ID may be that of a published key, which does not make it valid.
func NewKey(id string) Key {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return Key{id, private}
}

// Sign returns claims as a token signed with RS256.
func (k Key) Sign(claims Claims) string { return sign(jose.RS256, k.Private, k.ID, claims) }

// SignHS256 returns claims as a token that has the public key as its shared secret, which a verifier accepts that lets
// the token choose the algorithm.
func (k Key) SignHS256(claims Claims) string {
	public, err := jose.JSONWebKey{Key: &k.Private.PublicKey}.MarshalJSON()
	if err != nil {
		panic(err)
	}
	return sign(jose.HS256, public, k.ID, claims)
}

// Unsigned returns claims as a token without a signature.
func Unsigned(claims Claims) string {
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(marshal(claims)) + "."
}

func sign(alg jose.SignatureAlgorithm, key any, id string, claims Claims) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		panic(err)
	}
	signed, err := signer.Sign(marshal(claims))
	if err != nil {
		panic(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		panic(err)
	}
	return text
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// The handlers run with mu held.

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(marshal(v)) // the client may be gone
}

func (s *Server) discover(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
		"jwks_uri": s.URL + "/keys", "userinfo_endpoint": s.URL + "/userinfo",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"RS256"},
		"code_challenge_methods_supported":      []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"},
	})
}

func (s *Server) publish(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: &s.key.Private.PublicKey, KeyID: s.key.ID, Algorithm: string(jose.RS256), Use: "sig"},
	}})
}

// refuse notes a refusal.
func (s *Server) refuse(why string) string {
	s.refusals = append(s.refusals, why)
	return why
}

// secret makes a secret and notes it.
func (s *Server) secret() string {
	s.secrets = append(s.secrets, rand.Text())
	return s.secrets[len(s.secrets)-1]
}

// authorize sends the browser back with a code. It never redirects to an address that is not registered.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || s.redirect == "" || q.Get("redirect_uri") != s.redirect {
		http.Error(w, s.refuse("unknown client or redirect address"), http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}}
	switch challenge, err := base64.RawURLEncoding.DecodeString(q.Get("code_challenge")); {
	case q.Get("response_type") != "code":
		back.Set("error", "unsupported_response_type")
	case !slices.Contains(strings.Fields(q.Get("scope")), "openid"):
		back.Set("error", "invalid_scope")
	case len(q.Get("state")) < 20 || len(q.Get("nonce")) < 20:
		back.Set("error", "invalid_request")
		back.Set("error_description", "state and nonce must be random")
	case err != nil || len(challenge) != sha256.Size || q.Get("code_challenge_method") != "S256":
		back.Set("error", "invalid_request")
		back.Set("error_description", "PKCE with S256 is required")
	case s.person == nil:
		back.Set("error", "access_denied")
	}
	if why := back.Get("error"); why != "" {
		s.refuse(strings.TrimSpace(why + " " + back.Get("error_description")))
	} else {
		code := s.secret()
		s.codes[code] = grant{challenge: q.Get("code_challenge"), nonce: q.Get("nonce"), person: s.person, info: s.info}
		back.Set("code", code)
	}
	http.Redirect(w, r, s.redirect+"?"+back.Encode(), http.StatusSeeOther)
}

// token exchanges a code.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, code, why string) {
		s.refuse(code + " " + why)
		reply(w, status, map[string]string{"error": code, "error_description": why})
	}
	if id, secret, ok := r.BasicAuth(); !ok || id != ClientID || secret != Secret {
		w.Header().Set("WWW-Authenticate", "Basic")
		refuse(http.StatusUnauthorized, "invalid_client", "wrong client or secret")
		return
	}
	code, verifier := r.PostFormValue("code"), r.PostFormValue("code_verifier")
	s.secrets = append(s.secrets, verifier)
	g, ok := s.codes[code]
	sum := sha256.Sum256([]byte(verifier))
	switch {
	case r.PostFormValue("grant_type") != "authorization_code":
		refuse(http.StatusBadRequest, "unsupported_grant_type", "")
		return
	case !ok, g.used, r.PostFormValue("redirect_uri") != s.redirect:
		refuse(http.StatusBadRequest, "invalid_grant", "unknown or used code, or another redirect address")
		return
	case encode(sum[:]) != g.challenge:
		refuse(http.StatusBadRequest, "invalid_grant", "the verifier is not that of the challenge")
		return
	}
	g.used = true
	s.codes[code] = g
	access, now := s.secret(), time.Now()
	claims := maps.Clone(g.person)
	maps.Copy(claims, Claims{
		"iss": s.URL, "aud": ClientID, "nonce": g.nonce, "iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
	})
	s.tokens[access] = maps.Clone(g.person)
	maps.Copy(s.tokens[access], g.info)
	answer := s.answer
	if answer == nil {
		answer = func(c Claims, k Key) string { return k.Sign(c) }
	}
	id := answer(claims, s.key)
	s.secrets = append(s.secrets, id)
	all := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 300, "id_token": id}
	if id == "" {
		delete(all, "id_token")
		s.secrets = s.secrets[:len(s.secrets)-1]
	}
	reply(w, http.StatusOK, all)
}

func (s *Server) userInfo(w http.ResponseWriter, r *http.Request) {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	claims, ok := s.tokens[token]
	if !ok {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	reply(w, http.StatusOK, claims)
}
