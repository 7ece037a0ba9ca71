package config

import (
	"fmt"
	"regexp"
)

// Commits configures the commits that workers publish.
type Commits struct {
	Author  string `env:"ERRAND_COMMIT_AUTHOR" check:"author" help:"The name and the address of errand in commits, like 'errand-bot <1234+errand-bot@users.noreply.github.com>'. Unset: the account of the token or of the App on GitHub. Signatures count there only if the address belongs to the account with the key."`
	Key     Secret `env:"ERRAND_SIGNING_KEY" help:"A private SSH key without a passphrase that signs commits, so that GitHub shows them as verified: the absolute path of its file, which only the worker's user may be able to read, or the key itself, as of GITHUB_APP_PRIVATE_KEY."`
	KeyFile string `env:"-"` // empty: the variable had the key itself
}

var author = regexp.MustCompile(`^[^<>\x00-\x1f\x7f]*[^<>\x00-\x20\x7f] <[^<>\s]+@[^<>\s]+>$`)

func checkAuthor(p *Problems, s setting, _ string) {
	if !author.MatchString(s.field.String()) {
		p.add(s.name, fmt.Sprintf("must be a name and an address "+
			"like `errand-bot <1234+errand-bot@users.noreply.github.com>`, not %q", s.value), "")
	}
}
