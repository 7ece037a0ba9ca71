package auth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/pattern"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/tasks/policy"
)

// tokenPrefix makes API tokens recognisable for scanners of secrets.
const tokenPrefix = "errand_"

// Token is an API token as it is listed. The token itself is known only to the one who created it.
type Token struct {
	Name         string      `json:"name"`
	Role         policy.Role `json:"role"`
	Repositories []string    `json:"repositories,omitempty"` // patterns; empty: all
	By           string      `json:"by"`                     // who created it
	Created      time.Time   `json:"created"`
	Expires      time.Time   `json:"expires"`
}

// Tokens manages API tokens.
type Tokens struct {
	Store *store.List[json.RawMessage]
	Now   func() time.Time
}

const (
	maxTokens    = 500
	maxTokenDays = 366
)

var tokenName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// Create stores a token for a number of days and returns its secret, which cannot be read again. An *InputError says
// what to change, and a *RoleError who may.
func (t *Tokens) Create(ctx context.Context, want Token, days int) (secretText string, created Token, err error) {
	bad := func(format string, args ...any) (string, Token, error) {
		return "", Token{}, &tasks.InputError{Sentence: fmt.Sprintf(format, args...)}
	}
	all, err := t.List(ctx)
	switch {
	case err != nil:
		return "", Token{}, err
	case people.VisitorOf(ctx).Method == byAPIToken:
		return "", Token{},
			&people.RoleError{Sentence: "An API token cannot create another one, which could outlive it. Log " +
				"in, or use the console token."}
	case !tokenName.MatchString(want.Name):
		return bad("The name of a token has at most 40 characters of a-z, 0-9 and dash.")
	case want.Role < policy.Viewer:
		return bad("A token needs a role: viewer, user, operator or admin.")
	case want.Role == policy.Admin && len(want.Repositories) > 0:
		return bad("A token with the role admin cannot be limited to repositories.")
	case days < 1 || days > maxTokenDays:
		return bad("A token expires after 1 to %d days.", maxTokenDays)
	case slices.ContainsFunc(all, func(o Token) bool { return o.Name == want.Name }):
		return bad("There is a token %s already. Revoke it first, or choose another name.", want.Name)
	case len(all) >= maxTokens:
		return bad("There are %d tokens. Revoke those that are not used.", maxTokens)
	}
	for _, p := range want.Repositories {
		if !pattern.Check(p) {
			return bad("%q is not a pattern of repositories, such as acme/*.", p)
		}
	}
	want.By, want.Created = people.Actor(ctx), t.Now().UTC().Truncate(time.Second)
	want.Expires = want.Created.AddDate(0, 0, days)
	body, err := json.Marshal(want)
	if err != nil {
		return "", Token{}, fmt.Errorf("marshal token: %w", err)
	}
	text := tokenPrefix + secret()
	return text, want, t.Store.Save(ctx, tokenHash(text), body)
}

func tokenHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// List returns the tokens by name, also those that have expired.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	stored, err := t.Store.All(ctx)
	if err != nil {
		return nil, err
	}
	list := []Token{}
	for _, body := range stored {
		var one Token
		if json.Unmarshal(body, &one) == nil {
			list = append(list, one)
		}
	}
	slices.SortFunc(list, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Revoke ends the token with a name. It reports whether there was one.
func (t *Tokens) Revoke(ctx context.Context, name string) (found bool, err error) {
	stored, err := t.Store.All(ctx)
	for hash, body := range stored {
		var one Token
		if err == nil && json.Unmarshal(body, &one) == nil && one.Name == name {
			found, err = t.Store.Remove(ctx, hash)
		}
	}
	return found, err
}

// visitor returns who has a token, and whether it is valid.
func (t *Tokens) visitor(ctx context.Context, text string) (v people.Visitor, ok bool, err error) {
	if !strings.HasPrefix(text, tokenPrefix) {
		return v, false, nil
	}
	body, err := t.Store.Read(ctx, tokenHash(text))
	if errors.Is(err, store.ErrNotFound) {
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	var one Token
	if bad := json.Unmarshal(body, &one); bad != nil || !t.Now().Before(one.Expires) {
		return v, false, bad
	}
	v = people.Visitor{Name: "token:" + one.Name, Method: byAPIToken, Role: one.Role}
	if grant := (Grant{Role: one.Role, Repositories: one.Repositories}); !grant.covers("") {
		v.In = func(_ context.Context, repo string) policy.Repo { return policy.Repo{Role: highest(repo, grant)} }
	}
	return v, true, nil
}
