package githubfake

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
	"github.com/google/uuid"
)

// tokenLife is how long an installation token lives on GitHub. Tasks may run
// longer, so this is a number our code has to survive.
const tokenLife = time.Hour

// permissions are what the App was granted when it was installed, unless Config says so.
func permissions() map[string]string {
	return map[string]string{
		"metadata": "read", "contents": "write", "pull_requests": "write", "issues": "write",
		"checks": "write", "statuses": "write", "actions": "read",
	}
}

func (s *Server) appRoutes() {
	s.api("GET /user", "", func(r *request) reply {
		// An installation is nobody in particular: our login has to come from
		// GET /app when an App is configured.
		if r.who.kind == installationToken {
			return fail(403, notByIntegration)
		}
		return ok(s.user(r.who.login))
	})
	s.api("GET /users/{u}", "", func(r *request) reply { return ok(s.user(r.PathValue("u"))) })
	s.api("GET /app", "jwt", func(*request) reply { return ok(s.app()) })
	s.api("GET /app/installations", "jwt", func(r *request) reply {
		var all []object
		if s.cfg.SuspendedID != 0 {
			all = append(all, s.suspended())
		}
		if !s.uninstalled {
			all = append(all, s.installation())
		}
		return listing(s, r, all, func(o object) object { return o })
	})
	s.api("GET /installation/repositories", "metadata:read", func(r *request) reply {
		var all []*Repo
		for _, repo := range s.repos {
			if r.who.kind == installationToken && !repo.foreign && r.who.sees(repo) {
				all = append(all, repo)
			}
		}
		slices.SortFunc(all, func(a, b *Repo) int { return cmp.Compare(a.id, b.id) })
		a := listing(s, r, all, s.repository)
		a.body = object{"total_count": len(all), "repositories": a.body}
		return a
	})
	s.api("GET /repos/{o}/{r}/installation", "jwt", func(*request) reply { return ok(s.installation()) })
	s.api("POST /app/installations/{id}/access_tokens", "jwt", s.newToken)
}

// ExpireTokens ends all installation tokens that were handed out so far, as an hour does.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// Reinstall gives the App's installation another number, and ends its tokens.
func (s *Server) Reinstall(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cfg.InstallationID = id
	clear(s.tokens)
}

// newToken hands out an installation token, narrowed as the request asks.
func (s *Server) newToken(r *request) reply {
	if s.cfg.SuspendedID != 0 && r.PathValue("id") == strconv.FormatInt(s.cfg.SuspendedID, 10) {
		return fail(403, "This installation has been suspended")
	}
	if r.PathValue("id") != strconv.FormatInt(s.cfg.InstallationID, 10) {
		return fail(404, "Not Found")
	}
	var ask struct {
		Repositories []string          `json:"repositories"`
		RepositoryID []int64           `json:"repository_ids"`
		Permissions  map[string]string `json:"permissions"`
	}
	if len(r.body) > 0 {
		if a, good := decode(r, &ask); !good {
			return a
		}
	}
	// A token can be narrowed, never widened: asking for more is refused as a
	// whole, which is how a missing permission of the App shows.
	g := grant{expires: s.now().Add(s.cfg.TokenLife), permissions: s.cfg.Permissions}
	for scope, level := range ask.Permissions {
		if have := g.permissions[scope]; have != "write" && have != level {
			return fail(422, "The permissions requested are not granted to this installation.")
		}
	}
	if len(ask.Permissions) > 0 {
		g.permissions = maps.Clone(ask.Permissions)
		g.permissions["metadata"] = "read"
	}
	var chosen []object
	for _, repo := range s.repos {
		if !repo.foreign && (slices.Contains(ask.Repositories, repo.name) ||
			slices.Contains(ask.RepositoryID, repo.id)) {
			g.repos = append(g.repos, repo.key())
			chosen = append(chosen, s.repository(repo))
		}
	}
	asked := len(ask.Repositories) + len(ask.RepositoryID)
	if len(chosen) < asked {
		return fail(422,
			"There is at least one repository that does not exist or is not accessible to the parent installation.")
	}
	token := "ghs_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	s.tokens[token] = g
	body := object{
		"token": token, "expires_at": stamp(g.expires), "permissions": g.permissions, "repository_selection": "all",
	}
	if asked > 0 {
		body["repository_selection"], body["repositories"] = "selected", chosen
	}
	return created(body)
}

// verifyJWT checks an App's JWT as GitHub does and says what is wrong with it.
func (s *Server) verifyJWT(text string) string {
	var claims jwt.RegisteredClaims
	// The claims are checked by hand: the library knows no clock but its own.
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	_, err := parser.ParseWithClaims(text, &claims, func(*jwt.Token) (any, error) { return s.cfg.AppKey, nil })
	if err != nil {
		return "A JSON web token could not be decoded"
	}
	return s.checkClaims(claims)
}

// checkClaims answers in GitHub's words, or "".
func (s *Server) checkClaims(c jwt.RegisteredClaims) string {
	now := s.now()
	switch {
	case c.Issuer != strconv.FormatInt(s.cfg.AppID, 10):
		return "Integration not found"
	case c.ExpiresAt == nil || !c.ExpiresAt.After(now):
		return "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires"
	case c.ExpiresAt.After(now.Add(10*time.Minute + time.Second)):
		return "'Expiration time' claim ('exp') is too far in the future"
	case c.IssuedAt == nil || c.IssuedAt.After(now.Add(time.Second)):
		return "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued"
	}
	return ""
}

func (s *Server) app() object {
	return object{
		"id": s.cfg.AppID, "node_id": node("App", s.cfg.AppID), "slug": s.cfg.BotLogin, "name": s.cfg.BotLogin,
		"owner": s.user(s.account()), "html_url": s.url + "/apps/" + s.cfg.BotLogin,
		"permissions": s.cfg.Permissions, "events": s.cfg.Events, "installations_count": 1,
	}
}

// account is who installed the App: the owner of the first repository.
func (s *Server) account() string {
	first := &Repo{owner: "acme", id: math.MaxInt64}
	for _, r := range s.repos {
		if !r.foreign && r.id < first.id {
			first = r
		}
	}
	return first.owner
}

func (s *Server) installation() object {
	owner := s.account()
	return object{
		"id": s.cfg.InstallationID, "app_id": s.cfg.AppID, "app_slug": s.cfg.BotLogin, "account": s.user(owner),
		"target_type": "Organization", "repository_selection": "all", "permissions": s.cfg.Permissions,
		"events": s.cfg.Events, "suspended_at": nil, "html_url": s.url + "/organizations/" + owner +
			"/settings/installations",
	}
}

// suspended is the installation that its account has suspended. GitHub lists it too, but gives no token for it.
func (s *Server) suspended() object {
	o := s.installation()
	o["id"], o["suspended_at"] = s.cfg.SuspendedID, stamp(s.now())
	return o
}
