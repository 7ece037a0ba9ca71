package workspace

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
)

// Comparison is the difference between two states of a repository.
type Comparison struct {
	Base  string       // the commit that the files are compared with
	Files []FileChange // in the order of their names
	Left  []string     // changed files that were not compared: too large, or neither file nor link
}

// FileChange is the change of one file.
type FileChange struct {
	Name    string // in the new version, or in the old one if the file is gone
	From    string // the old name of a renamed file
	Kind    string // as in git's raw output: A, D, M, R or T (a file became a link, or the reverse)
	Added   int    // lines
	Removed int
	Binary  bool   // or too large to be compared by lines
	Patch   string // with git's header
	Cut     bool   // Patch lacks lines or is missing, because of the limit
}

// Comparing says how Changes compares.
type Comparing struct {
	Reviewed      bool // compare Clone.Head with the commit at which it left Clone.Base, as Diff does
	Live          bool // an agent may run in the clone meanwhile
	TrustedConfig bool // the value of Want
	Limit         int  // bytes of all patches
}

const (
	maxShown    = 1 << 20  // bytes of a file that is compared in a live clone, or if not all could be published
	maxShownAll = 32 << 20 // of all of them
)

// Changes compares the files in c, as Publish would publish them, with the newest commit of their history that the
// mirror has. Hence commits that an agent merged, or rebased its work onto, are no changes. Changes that an agent had
// git ignore by flags of the index are included, though Publish leaves them out.
//
// With Live, files are read byte by byte as by Snapshot, and line ends are not converted; it may fail if an agent packs
// objects meanwhile. Nothing in the git directory can show another change, or execute anything. No configuration,
// attribute or flag there can hide a change of a tracked file that exists, except of the CLI's own configuration.
func (w *Workspace) Changes(ctx context.Context, c Clone, how Comparing) (_ Comparison, err error) {
	defer wrap(&err, "compare %s", c.Repo)
	if how.Reviewed {
		g, span, release, err := w.span(ctx, c)
		if err != nil {
			return Comparison{}, err
		}
		defer release()
		files, err := g.compare(ctx, how.Limit, span)
		return Comparison{Base: c.BaseSHA, Files: files}, err
	}
	s, err := w.shadow(ctx, c, latest)
	if err != nil {
		return Comparison{}, err
	}
	defer s.remove()
	tree, left, err := s.tree(ctx, how)
	if err != nil {
		return Comparison{}, err
	}
	base, err := s.known(ctx)
	if err != nil {
		return Comparison{}, err
	}
	files, err := s.git.compare(ctx, how.Limit, base, tree)
	return Comparison{Base: base, Files: files, Left: left}, err
}

// tree returns a tree or commit of the files in the work tree, and the names of those that it lacks.
func (s *shadow) tree(ctx context.Context, how Comparing) (tree string, left []string, err error) {
	if !how.Live { // otherwise the agent could replace files by links while git reads them
		if tree, err = s.everything(ctx, how.TrustedConfig); !errors.Is(err, ErrUnfit) {
			return tree, nil, err
		}
	}
	c, err := s.changes(ctx)
	if err != nil {
		return "", nil, err
	}
	tree, left, err = s.commit(ctx, c, maxShown, maxShownAll)
	return cmp.Or(tree, s.head), short(left), err
}

// compare returns the changes of a span of commits or trees.
func (g git) compare(ctx context.Context, limit int, span ...string) ([]FileChange, error) {
	g, span = g.configured("core.bigFileThreshold=1m"), append(span, "--")
	list, err := g.run(ctx, append(diff("--find-renames", "--raw", "--numstat", "-z"), span...)...)
	if err != nil {
		return nil, err
	}
	files, err := readList(list)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	text, cut, err := g.lines(ctx, limit, append(diff("--find-renames", "--patch", "--full-index"), span...)...)
	if err != nil {
		return nil, err
	}
	patches := splitPatch(strings.ToValidUTF8(text, "\uFFFD"))
	for i := range files {
		n := 1
		if files[i].Kind == "T" { // git writes it as a removal and an addition
			n = 2
		}
		n = min(n, len(patches))
		files[i].Patch, patches = strings.Join(patches[:n], ""), patches[n:]
		files[i].Cut = cut && len(patches) == 0
	}
	return files, nil
}

// diff returns the arguments of a git diff whose output is the same with every configuration.
func diff(args ...string) []string {
	return append([]string{"diff", "--no-color", "--no-ext-diff", "--no-textconv"}, args...)
}

// splitPatch splits the output of git diff into its files. Every line of content begins with a blank, a sign or a
// backslash.
func splitPatch(text string) (patches []string) {
	const begin = "diff --git "
	for text != "" {
		next := strings.Index(text[1:], "\n"+begin)
		if next < 0 {
			return append(patches, text)
		}
		patches, text = append(patches, text[:next+2]), text[next+2:]
	}
	return patches
}

var errList = errors.New("git's list of changes is not understood")

// readList reads the output of git diff --raw --numstat -z: first the raw entries, then the counts, both in the order
// of the files.
func readList(out string) (files []FileChange, err error) {
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	next := func() (field string) {
		if len(fields) > 0 {
			field, fields = fields[0], fields[1:]
		}
		return field
	}
	for len(fields) > 0 && strings.HasPrefix(fields[0], ":") { // ":<mode> <mode> <object> <object> <kind>", "<name>"
		meta := strings.Fields(next())
		f := FileChange{Kind: meta[len(meta)-1][:1]}
		if f.Kind == "R" || f.Kind == "C" {
			f.From = next()
		}
		f.Name = next()
		files = append(files, f)
	}
	for i := range files { // "<added>\t<removed>\t<name>", or for a rename "<added>\t<removed>\t", "<old>", "<new>"
		counts := strings.SplitN(next(), "\t", 3)
		if len(counts) != 3 {
			return nil, errList
		}
		if counts[2] == "" {
			next()
			counts[2] = next()
		}
		f := &files[i]
		if counts[2] != f.Name {
			return nil, errList
		}
		if f.Binary = counts[0] == "-"; f.Binary {
			continue
		}
		var err1, err2 error
		f.Added, err1 = strconv.Atoi(counts[0])
		f.Removed, err2 = strconv.Atoi(counts[1])
		if err := errors.Join(err1, err2); err != nil {
			return nil, err
		}
	}
	return files, nil
}
