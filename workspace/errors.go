package workspace

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of Checkout that callers can distinguish. Retrying does not help.
var (
	// ErrNotFound means that the repository does not exist or the credential cannot see it; hosts do not say which.
	ErrNotFound = errors.New("repository not found or no access")
	// ErrAuth means that the host refused the credential. The operator has to fix it, not the user.
	ErrAuth = errors.New("credential refused")
	// ErrRef means that the repository has no such branch, tag or commit.
	ErrRef = errors.New("reference not found")
)

// gitError is a failed git command. stderr is bounded and contains no secret.
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

// line returns the most useful line of stderr: git's first own error, because advice and consequences follow it, or
// else the last line.
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

// remoteError classifies an error of a git that talked to the remote. Git has no exit codes for these errors, so it
// matches the phrases of git 2.31 to 2.50 in the C locale (http.c, remote-curl.c, setup.c, upload-pack.c).
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
	// A host that prompts an anonymous reader for a name hides a private repository like a missing one.
	case has("' not found", "does not appear to be a git repository", "could not read Username", "returned error: 404"):
		meaning = ErrNotFound
	case has("not our ref", "unadvertised object", "couldn't find remote ref"):
		meaning = ErrRef
	default:
		return err
	}
	return fmt.Errorf("%w (%s)", meaning, ge.line())
}

// malformed reports whether git rejected the objects that a remote sent.
func malformed(err error) bool {
	ge, ok := errors.AsType[*gitError](err)
	return ok && strings.Contains(ge.stderr, "fsck error")
}

// lasting reports whether neither a retry nor a new mirror can fix an error.
func lasting(err error) bool {
	return errors.Is(err, ErrNotFound) || errors.Is(err, ErrAuth) || errors.Is(err, ErrRef)
}
