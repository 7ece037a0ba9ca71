package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent/cloud"
	"github.com/errand-fleet/errand/agent/internal/gateway"
	"github.com/errand-fleet/errand/agent/internal/tools"
	"github.com/errand-fleet/errand/internal/pattern"
)

// ModelCredential is one of several credentials for the model: exactly one value, a token that changes, or a cloud,
// which may have an APIKey. A run keeps the one it starts with. One that the model refuses is left out when the next
// runs start.
//
// The values may contain {{env "NAME"}}, a variable of the worker's environment; give what CredentialSecrets returns to
// the redactor.
type ModelCredential struct {
	Name         string // in logs
	APIKey       string
	OAuthToken   string // of a Claude subscription
	AuthToken    string // a bearer token
	Token        ModelToken
	Cloud        func(key string) (cloud.Provider, error) // nil: Anthropic's own API, or a gateway like it
	Names        map[string]string                        // see Config.ModelNames; nil: those
	Prices       PriceList                                // see Config.Prices; nil: those
	Headers      http.Header                              // see Config.ModelHeaders; nil: those
	Repositories []string                                 // patterns of repositories whose runs may use it; empty: all
	People       []string                                 // the Spec.Person of runs that may use it; empty: all
}

// CheckCredentials returns everything that is wrong with credentials. New refuses them then.
func CheckCredentials(list []ModelCredential, getenv func(string) string) (errs []error) {
	for _, c := range list {
		if _, err := c.expand(getenv); err != nil {
			errs = append(errs, fmt.Errorf("credential %q: %w", c.Name, err))
		}
	}
	return errs
}

// CredentialSecrets returns the values of credentials. Those that cannot be used are left out.
func CredentialSecrets(list []ModelCredential, getenv func(string) string) (secrets []string) {
	for _, c := range list {
		if one, err := c.expand(getenv); err == nil && one.Credential != (Credential{}) {
			secrets = append(secrets, one.APIKey+one.OAuthToken+one.AuthToken)
		}
	}
	return secrets
}

// expand returns the credential with its value, and without its cloud.
func (c ModelCredential) expand(getenv func(string) string) (gateway.Named, error) {
	given := Credential{APIKey: c.APIKey, OAuthToken: c.OAuthToken, AuthToken: c.AuthToken}
	text := c.APIKey + c.OAuthToken + c.AuthToken
	free := c.Cloud != nil || c.Token != nil // needs no value
	switch {
	case text == "" && !free, text != "" && c.Token != nil, c.Cloud != nil && text != c.APIKey,
		given.With(text) != given:
		return gateway.Named{},
			errors.New("it has no value, or several: set one of api_key, oauth_token, auth_token and token_command")
	}
	if err := checkPatterns(c.Repositories); err != nil {
		return gateway.Named{}, err
	}
	named := gateway.Named{
		Token: c.Token, Name: c.Name, Names: c.Names, Prices: c.Prices, Headers: c.Headers,
	}
	if text == "" {
		return named, nil
	}
	value, err := tools.Secret("credential", text, getenv)
	if err != nil {
		return gateway.Named{}, err
	}
	if value == "" || strings.ContainsAny(value, "\r\n") {
		return gateway.Named{}, errors.New("its value is empty or has more than one line")
	}
	named.Credential = given.With(value)
	return named, nil
}

// namedCredentials returns the credentials with their values, at least one.
func namedCredentials(cfg Config, getenv func(string) string) (named []gateway.Named, err error) {
	for _, c := range cfg.Credentials {
		one, err := c.expand(getenv)
		if err != nil {
			continue // New has checked it
		}
		if c.Cloud != nil {
			if one.Cloud, err = c.Cloud(one.APIKey); err != nil {
				return nil, fmt.Errorf("credential %q: %w", c.Name, err)
			}
			one.Credential = Credential{}
		}
		named = append(named, one)
	}
	if len(named) == 0 {
		named = []gateway.Named{{
			Credential: cfg.Credential, Token: cfg.ModelToken, Cloud: cfg.Cloud,
		}}
	}
	for i := range named {
		if n := &named[i]; n.Names == nil {
			n.Names = cfg.ModelNames
		}
		if n := &named[i]; n.Prices == nil {
			n.Prices = cfg.Prices
		}
	}
	return named, nil
}

// The state of a credential for the model; see package gateway.
type (
	CredentialState  = gateway.KeyState
	CredentialWindow = gateway.Window
)

// Credentials returns the state of each credential for the model, by name. The only credential has no name.
func (r *Runner) Credentials() map[string]CredentialState { return r.model.States() }

// Learn merges what other workers know of credentials.
func (r *Runner) Learn(all map[string]CredentialState) { r.model.Learn(all) }

// ModelCheck is the result of a one-token request with one credential. The only credential has no name.
type ModelCheck struct {
	Name, Host string
	Problem    *Error // in the provider's words; nil if the model answered, or if Closed
	Closed     bool   // no request was sent: only the CLI may use a subscription
}

// CheckModel asks the model for one token with each credential, as a run's gateway would, and without starting the CLI.
// An empty model is the one that the CLI starts with.
func CheckModel(ctx context.Context, r *Runner, model string) (list []ModelCheck) {
	for _, c := range r.model.Check(ctx, model) {
		one := ModelCheck{Name: c.Name, Host: c.Host, Closed: c.Closed}
		if c.Problem != "" {
			one.Problem = NewError(checkedClass(c), r.cfg.Redactor.String(c.Problem))
		}
		list = append(list, one)
	}
	return list
}

// checkedClass returns the class of a refusal. Status 0 means no answer, perhaps for lack of a credential.
func checkedClass(p gateway.Probe) Class {
	if p.Denied {
		return ClassModel
	}
	switch p.Status {
	case 0, http.StatusUnauthorized, http.StatusForbidden:
		return ClassAuth
	case http.StatusPaymentRequired:
		return ClassBilling
	case http.StatusBadRequest, http.StatusNotFound: // clouds have both for a model that the region lacks
		return ClassModel
	case http.StatusTooManyRequests:
		return ClassRateLimit
	}
	return ClassOverloaded
}

// credentialsFor returns the names of the credentials that a run may use; nil: all. A run that asks the model nothing
// needs none of its own.
func credentialsFor(s Spec, all []ModelCredential) (names []string, err *Error) {
	if len(all) == 0 || s.inert {
		return nil, nil
	}
	for _, c := range all {
		if s.covered(c.Repositories) && (len(c.People) == 0 || slices.Contains(c.People, s.Person)) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		e := NewError(ClassAuth, fmt.Sprintf("none of the credentials for the model is for repository %q and person %q",
			s.Repo, s.Person))
		e.Remedy = "Let a credential in errand.yaml be used for them, or for all (docs/models.md)."
		return nil, e
	}
	return names, nil
}

// checkPatterns returns an error if one of the patterns of repositories cannot be used.
func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if !pattern.Check(p) {
			return fmt.Errorf("%q is not a pattern of owner/name", p)
		}
	}
	return nil
}
