package githubfake

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Kinds of caller, as Call.As shows them.
const (
	nobody            = ""
	refusedCaller     = "refused"
	tokenCaller       = "token"
	appCaller         = "app"
	installationToken = "installation"
)

// caller is who a request speaks for.
type caller struct {
	kind   string
	login  string
	secret string // of a person
	reason string // of a refusal
	grant  grant  // of an installation token
}

// grant is what an installation token may do until when.
type grant struct {
	expires     time.Time
	permissions map[string]string // scope -> read or write
	repos       []string          // lower-case full names; nil means all
}

// identify reads the credentials: "Bearer x", "token x", or Basic with the
// token as password, which is what git sends.
func (s *Server) identify(r *http.Request) caller {
	header := r.Header.Get("Authorization")
	if header == "" {
		return caller{}
	}
	scheme, secret, _ := strings.Cut(header, " ")
	switch strings.ToLower(scheme) {
	case "bearer", "token":
	case "basic":
		_, secret, _ = r.BasicAuth()
	default:
		secret = ""
	}
	if secret == s.cfg.Token {
		return caller{kind: tokenCaller, login: s.cfg.BotLogin}
	}
	if g, known := s.tokens[secret]; known && s.now().Before(g.expires) {
		return caller{kind: installationToken, login: s.cfg.BotLogin + "[bot]", grant: g}
	}
	if p, known := s.oauth.tokens[secret]; known {
		return caller{kind: userCaller, login: p.person.Login, secret: secret}
	}
	// Only the shape tells a JWT from a token, and GitHub takes it as Bearer only.
	if strings.EqualFold(scheme, "bearer") && strings.Count(secret, ".") == 2 && s.cfg.AppID != 0 {
		if reason := s.verifyJWT(secret); reason != "" {
			return caller{kind: refusedCaller, reason: reason}
		}
		return caller{kind: appCaller, login: s.cfg.BotLogin}
	}
	return caller{kind: refusedCaller, reason: "Bad credentials"}
}

// sees reports whether a repository exists for the caller. The App itself is
// asked about installations, not contents, and sees what is installed.
func (c caller) sees(r *Repo) bool {
	switch c.kind {
	case tokenCaller: // the account it belongs to was invited everywhere
		return true
	case appCaller:
		return !r.foreign
	case installationToken:
		if c.grant.repos != nil && !slices.Contains(c.grant.repos, r.key()) {
			return false
		}
		return !r.foreign || !r.private
	default:
		return !r.private
	}
}

// may reports whether one of the comma-separated scopes is granted. Only
// installation tokens are limited by scope.
func (c caller) may(scopes, level string) bool {
	if c.kind != installationToken {
		return true
	}
	// Several scopes: a pull request's conversation is open to whoever may
	// write issues or pull requests.
	return slices.ContainsFunc(strings.Split(scopes, ","), func(scope string) bool {
		have := c.grant.permissions[scope]
		return have == "write" || have == level
	})
}
