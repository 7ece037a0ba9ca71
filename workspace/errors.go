package workspace

import (
	"errors"
	"fmt"
	"strings"
)

// What a caller of Checkout can tell apart. None of them goes away by trying again.
var (
	// ErrNotFound: there is no such repository, or our credential may not see it; hosts do not tell which.
	ErrNotFound = errors.New("repository not found or no access")
	// ErrAuth: the host refused the credential itself. The operator's matter, not the user's.
	ErrAuth = errors.New("credential refused")
	// ErrRef: the repository has no such branch, tag or commit.
	ErrRef = errors.New("reference not found")
)

// gitError is a git that ended badly. stderr is bounded and holds no secret.
type gitError struct {
	command string // fetch
	stderr  string
	err     error
}

func (e *gitError) Error() string {
	if line := e.line(); line != "" {
		return fmt.Sprintf("git %s: %s", e.command, line)
	}
	return fmt.Sprintf("git %s: %v", e.command, e.err)
}

func (e *gitError) Unwrap() error { return e.err }

// line is the one line of stderr worth telling: git's first own complaint, as advice and consequences follow it,
// or else the last line of all.
func (e *gitError) line() string {
	last := ""
	for line := range strings.Lines(e.stderr) {
		line = strings.TrimSpace(strings.Map(printable, line))
		if strings.HasPrefix(line, "fatal: ") || strings.HasPrefix(line, "error: ") {
			return line
		}
		if line != "" {
			last = line
		}
	}
	return last
}

// printable drops control characters: a remote chooses what comes after "remote:".
func printable(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

// remoteError gives an error of a git that talked to the remote its meaning. Git has no exit codes for these; the phrases
// are those of git 2.31 to 2.50 in the C locale (http.c, remote-curl.c, setup.c, upload-pack.c).
func remoteError(err error) error {
	var ge *gitError
	if !errors.As(err, &ge) {
		return err
	}
	has := func(phrases ...string) bool {
		for _, p := range phrases {
			if strings.Contains(ge.stderr, p) {
				return true
			}
		}
		return false
	}
	meaning := error(nil)
	switch {
	case has("Authentication failed for", "returned error: 401", "returned error: 403"):
		meaning = ErrAuth
	// A host that asks an anonymous reader for a name hides a private repository just as a missing one.
	case has("' not found", "does not appear to be a git repository", "could not read Username", "returned error: 404"):
		meaning = ErrNotFound
	case has("not our ref", "unadvertised object", "couldn't find remote ref"):
		meaning = ErrRef
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", meaning, ge.line())
}

// malformed reports that git has refused what a remote sent.
func malformed(err error) bool {
	ge, ok := errors.AsType[*gitError](err)
	return ok && strings.Contains(ge.stderr, "fsck error")
}

// lasting reports an error that another attempt, or another mirror, would not cure.
func lasting(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrAuth) || errors.Is(err, ErrRef)
}
