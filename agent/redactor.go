package agent

import "github.com/errand-fleet/errand/agent/internal/redact"

// Redactor removes secrets from text: the values it was given, in the forms in which they commonly appear, and anything that looks like a
// well-known kind of credential. It is immutable and safe for concurrent use. A nil *Redactor hides nothing.
type Redactor = redact.Redactor

// NewRedactor returns a Redactor for the given secrets and the well-known kinds of credentials. It ignores empty and very short values.
func NewRedactor(secrets ...string) *Redactor { return redact.New(secrets...) }
