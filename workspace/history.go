package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Old history has objects that no git would create today: without an address, with unsorted trees, with impossible
// dates. Hosts keep them, and git works with them. Only what endangers whoever checks it out is refused.

// ErrUnsafe means that the history of the repository has an object that endangers a checkout. The error names the
// object and git's rule.
var ErrUnsafe = errors.New("its history has an object that endangers a checkout")

// endangers lists the objects that mirrors refuse, by git's names for what is wrong with them (git help fsck). All
// other names that the installed git knows are accepted in what a remote sends. Newer versions have more of both.
var endangers = map[string]bool{
	// Names of files that lead out of the work tree or into .git.
	"hasDot": true, "hasDotdot": true, "hasDotgit": true, "fullPathname": true, "emptyName": true,
	// A .gitmodules that makes git submodule write elsewhere or execute something, or that git cannot read. URLs are
	// absent: git does not follow submodules here, and checks a URL when somebody does.
	"gitmodulesName": true, "gitmodulesPath": true, "gitmodulesUpdate": true, "gitmodulesSymlink": true,
	"gitmodulesBlob": true, "gitmodulesMissing": true, "gitmodulesLarge": true,
	// What git cannot read: it refuses these in any case, or fails later.
	"nulInHeader": true, "unterminatedHeader": true, "badTree": true, "nullSha1": true,
}

// findAccepted asks git which malformed objects it knows, and keeps those that do no harm. Git stops at a name that it
// does not know, so a list here would have to be one of its version.
func (g git) findAccepted(ctx context.Context) ([]string, error) {
	out, err := g.run(ctx, "help", "--config-for-completion")
	if err != nil {
		return nil, err
	}
	var accepted []string
	for line := range strings.Lines(out) {
		id, found := strings.CutPrefix(strings.TrimSpace(line), "fsck.")
		if found && id != "skipList" && !endangers[id] {
			accepted = append(accepted, id)
		}
	}
	return accepted, nil
}

// accepting returns g for objects that a remote has, which nobody here can mend.
func (g git) accepting() git {
	g.conf = slices.Clip(g.conf)
	for _, id := range g.accepted {
		g.conf = append(g.conf, "fetch.fsck."+id+"=ignore", "fsck."+id+"=ignore")
	}
	return g
}

// malformed reports whether git rejected the objects that a remote sent.
func malformed(err error) bool {
	ge, ok := errors.AsType[*gitError](err)
	return ok && strings.Contains(ge.stderr, "fsck error")
}

// receive runs a git that fetches into the mirror, and removes what that git has refused. Git looks at some objects
// only when it has all of them, and then keeps the refused pack: the next fetch would find its objects there, and
// accept them. It does accept what is left if the worker is killed, or its time ends, before receive has removed that.
// The caller holds the mirror's lock.
func (m mirror) receive(fetch func() error) error {
	dir := filepath.Join(m.dir, "objects", "pack")
	before, err := list(dir)
	if err != nil {
		return err
	}
	refused := fetch()
	if !malformed(refused) { // refs may lead to what is there
		return refused
	}
	after, err := list(dir)
	if err != nil {
		return errors.Join(refused, err)
	}
	for _, name := range after {
		if slices.Contains(before, name) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return errors.Join(refused, err)
		}
	}
	return refused
}

// refusedObject is git's line about an object that it refuses.
var refusedObject = regexp.MustCompile(`(?m)^error: (object [0-9a-f]{40}: .*)$`)

// unsafeError returns the error of a fetch that git has refused.
func unsafeError(refused *gitError) error {
	about := refused.line()
	if m := refusedObject.FindStringSubmatch(refused.stderr); m != nil {
		about = strings.Map(printable, m[1])
	}
	return fmt.Errorf("%w: %s", ErrUnsafe, about)
}
