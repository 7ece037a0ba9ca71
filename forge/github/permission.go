package github

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/forge"
)

// loginForm matches logins. Other strings could be paths within GitHub's API.
var loginForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\[bot\])?$`)

// IsLogin reports whether s has the form of a login.
func IsLogin(s string) bool { return loginForm.MatchString(s) }

// Permission returns what an account may do in a repository. See PermissionFor.
func (f *Forge) Permission(ctx context.Context, repo, login string) (forge.Permission, error) {
	return f.PermissionFor(ctx, repo, 0, login)
}

// PermissionFor asks GitHub what an account may do in a repository: author_association in a payload is about membership, not permission, and
// as old as the event. The error is forge.ErrNotFound if GitHub does not know the account, and a *forge.RefusedError if errand may not ask.
// After any error the permission is PermissionNone.
func (f *Forge) PermissionFor(ctx context.Context, repo string, installation int64, login string) (forge.Permission, error) {
	if !IsLogin(login) {
		return forge.PermissionNone, nil
	}
	key, now := strings.ToLower(repo+" "+login), f.cfg.Now()
	if p, ok := f.permissions.Get(key, now); ok {
		return p, nil
	}
	what := "ask what " + login + " may do in " + repo
	gh, err := f.Client(ctx, repo, installation)
	if err != nil {
		return forge.PermissionNone, f.Explain(what, err)
	}
	owner, name := f.split(repo)
	level, _, err := gh.Repositories.GetPermissionLevel(ctx, owner, name, url.PathEscape(login))
	if StatusCode(err) == http.StatusNotFound {
		return forge.PermissionNone, fmt.Errorf("%s: %w", what, forge.ErrNotFound)
	}
	if err != nil {
		return forge.PermissionNone, f.Explain(what, err)
	}
	p := forge.Permission(level.GetPermission())
	f.permissions.Put(key, p, now)
	return p, nil
}
