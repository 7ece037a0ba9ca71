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

// receivingName is the file in a mirror that lists what objects/pack had before a fetch. It is there until git has
// accepted what came, or that is gone.
const receivingName = "receiving"

// receive runs a git that fetches into the mirror, and removes what that git has refused. Git looks at some objects
// only when it has all of them, and then keeps the refused pack: the next fetch would find its objects there, and
// accept them. What a fetch leaves that did not come to its end, the next one removes. The caller holds the mirror's
// lock.
func (m mirror) receive(ctx context.Context, fetch func() error) error {
	if err := m.dropRefused(ctx); err != nil {
		return err
	}
	names, err := list(filepath.Join(m.dir, "objects", "pack"))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(m.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := put(root, receivingName, strings.Join(names, "\n")); err != nil {
		return err
	}
	switch err := fetch(); {
	case err == nil:
		return root.Remove(receivingName)
	case malformed(err):
		return errors.Join(err, m.dropNew())
	default: // some of it may be there
		return err
	}
}

// dropRefused removes what a fetch has left that did not come to its end, unless git has accepted it: only then do refs
// lead there.
func (m mirror) dropRefused(ctx context.Context) error {
	record := filepath.Join(m.dir, receivingName)
	if !exists(record) {
		return nil
	}
	accepted, err := m.refsNeedNew(ctx)
	if err != nil {
		return err
	}
	if accepted {
		return os.Remove(record)
	}
	return m.dropNew()
}

// dropNew removes the files of objects/pack that came since receivingName was written.
func (m mirror) dropNew() error {
	files, err := m.newPackFiles()
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(m.dir, receivingName))
}

func (m mirror) newPackFiles() ([]string, error) {
	before, err := os.ReadFile(filepath.Join(m.dir, receivingName))
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(m.dir, "objects", "pack")
	names, err := list(dir)
	if err != nil {
		return nil, err
	}
	known, files := strings.Split(string(before), "\n"), []string(nil)
	for _, name := range names {
		if !slices.Contains(known, name) {
			files = append(files, filepath.Join(dir, name))
		}
	}
	return files, nil
}

// refsNeedNew reports whether a ref leads to an object that only the packs of newPackFiles have. Meanwhile git does not
// see these: it knows a pack by its index.
func (m mirror) refsNeedNew(ctx context.Context) (need bool, err error) {
	const aside = ".aside"
	files, err := m.newPackFiles()
	if err != nil {
		return false, err
	}
	for _, name := range files {
		if filepath.Ext(name) != ".idx" {
			continue
		}
		if err := os.Rename(name, name+aside); err != nil {
			return false, err
		}
		defer func() { err = errors.Join(err, os.Rename(name+aside, name)) }()
	}
	refs, err := m.git.run(ctx, "for-each-ref", "--format=%(objectname)")
	if err != nil {
		return false, err
	}
	out, err := m.git.reading(refs).run(ctx, "cat-file", "--batch-check")
	return strings.Contains(out, " missing\n"), err
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
