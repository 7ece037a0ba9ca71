package gateway

import "cmp"

// Credential authenticates requests to the model. The first field that is set is used. Unless runs ask the model
// directly, the CLI gets the token of its gateway instead, in the same way.
type Credential struct {
	APIKey     string // handed to the CLI through a pipe: it is not in its environment
	OAuthToken string // likewise
	AuthToken  string // a bearer token; the CLI takes it from its environment only, where tools can see it
}

// With returns a credential of the same kind with another value.
func (c Credential) With(value string) Credential {
	switch {
	case c.APIKey != "":
		return Credential{APIKey: value}
	case c.OAuthToken != "":
		return Credential{OAuthToken: value}
	case c.AuthToken != "":
		return Credential{AuthToken: value}
	}
	return Credential{}
}

// header returns the header of a request to the model.
func (c Credential) header() (name, value string) {
	if c.APIKey != "" {
		return "X-Api-Key", c.APIKey
	}
	return "Authorization", "Bearer " + cmp.Or(c.OAuthToken, c.AuthToken)
}

// credentialFD is the descriptor at which the keeper leaves the credential for the CLI.
const credentialFD = "3"

// Variable returns the environment variable by which the CLI finds the credential.
func (c Credential) Variable() (name, value string) {
	switch {
	case c.APIKey != "":
		return "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR", credentialFD
	case c.OAuthToken != "":
		return "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR", credentialFD
	case c.AuthToken != "":
		return "ANTHROPIC_AUTH_TOKEN", c.AuthToken
	}
	return "", ""
}

// Piped returns what goes through the descriptor; empty if the environment has it all.
func (c Credential) Piped() string { return cmp.Or(c.APIKey, c.OAuthToken) }
