package config

import (
	"fmt"
	"regexp"
)

// Commits configures the commits that workers publish.
type Commits struct {
	Author string `env:"ERRAND_COMMIT_AUTHOR" check:"author"` // Name <address>; empty = errand's GitHub account
	// an SSH key without a passphrase, given as GitHub.AppKey is; only roles that run tasks read its file. Empty = none
	Key     Secret `env:"ERRAND_SIGNING_KEY"`
	KeyFile string `env:"-"` // empty: the variable had the key itself
}

var author = regexp.MustCompile(`^[^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f] <[^<>\s]+@[^<>\s]+>$`)

func checkAuthor(p *Problems, s setting, _ string) {
	if !author.MatchString(s.field.String()) {
		p.add(s.name, fmt.Sprintf("must be a name and an address "+
			"like `errand-bot <1234+errand-bot@users.noreply.github.com>`, not %q", s.value), "")
	}
}
