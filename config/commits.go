package config

import (
	"cmp"
	"fmt"
	"regexp"
)

// Commits configures the commits that workers publish.
type Commits struct {
	Author  string `env:"ERRAND_COMMIT_AUTHOR" check:"author"` // Name <address>; empty = errand's GitHub account
	KeyFile string `env:"ERRAND_SIGNING_KEY_FILE"`             // absolute; SSH key without a passphrase; empty = none
	KeyText Secret `env:"ERRAND_SIGNING_KEY"`                  // the key itself; \n may replace a line end
	Key     Secret `env:"-"`                                   // the key, from either; only for roles that run tasks
}

// readKey loads the key that signs commits. Its form is checked where it is used.
func (c *Commits) readKey(p *Problems, read readFunc) {
	text := keyText(c.KeyText)
	if text != "" && c.KeyFile != "" {
		p.add("ERRAND_SIGNING_KEY", "and ERRAND_SIGNING_KEY_FILE are both set", "unset one of them")
	}
	c.Key = Secret(cmp.Or(text, readFile(p, read, "ERRAND_SIGNING_KEY_FILE", &c.KeyFile)))
}

var author = regexp.MustCompile(`^[^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f] <[^<>\s]+@[^<>\s]+>$`)

func checkAuthor(p *Problems, s setting, _ string) {
	if !author.MatchString(s.field.String()) {
		p.add(s.name, fmt.Sprintf("must be a name and an address "+
			"like `errand-bot <1234+errand-bot@users.noreply.github.com>`, not %q", s.value), "")
	}
}
