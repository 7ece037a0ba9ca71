package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// maxLive bounds the bytes of changed files that a comparison of a live clone reads.
const maxLive = 32 << 20

// Changes compares the files in c, as Publish would publish them, with the newest commit of their history that the
// mirror has. Hence commits that an agent merged, or rebased its work onto, are no changes.
//
// With Live, files are read byte by byte as by Snapshot, and line ends are not converted. Neither configuration nor
// attributes of the clone can hide a change or execute anything.
func (w *Workspace) Changes(ctx context.Context, c Clone, how Comparing) (Comparison, error) {
	compare := compareFiles
	if how.Reviewed {
		compare = compareHead
	}
	found, err := compare(ctx, w, c, how)
	if err != nil {
		found, err = compare(ctx, w, c, how) // an agent may just have packed what was being read
	}
	if err != nil {
		return Comparison{}, fmt.Errorf("compare %s: %w", c.Repo, err)
	}
	return found, nil
}

func compareFiles(ctx context.Context, w *Workspace, c Clone, how Comparing) (Comparison, error) {
	s, err := w.shadow(ctx, c, latest)
	if err != nil {
		return Comparison{}, err
	}
	defer s.remove()
	tree, left, err := s.tree(ctx, how)
	if err != nil {
		return Comparison{}, err
	}
	found := Comparison{Left: left}
	if found.Base, err = s.known(ctx); err != nil {
		return Comparison{}, err
	}
	found.Files, err = s.git.compare(ctx, how.Limit, found.Base, tree)
	return found, err
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
	for _, most := range fileSteps[1:] {
		if tree, left, err = s.commit(ctx, c, most, maxLive); !errors.Is(err, errLong) {
			break
		}
	}
	if tree == "" {
		tree = s.head
	}
	return tree, short(left), err
}

func compareHead(ctx context.Context, w *Workspace, c Clone, how Comparing) (Comparison, error) {
	g, err := w.diffing(ctx, c)
	if err != nil {
		return Comparison{}, err
	}
	files, err := g.compare(ctx, how.Limit, c.BaseSHA+"..."+c.Head)
	return Comparison{Base: c.BaseSHA, Files: files}, err
}

// compare returns the changes of a span of commits or trees.
func (g git) compare(ctx context.Context, limit int, span ...string) ([]FileChange, error) {
	g.conf = append(slices.Clip(g.conf), "core.bigFileThreshold=1m")
	diff := func(g git, form ...string) (string, error) {
		args := slices.Concat([]string{"diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"}, form,
			span, []string{"--"})
		return g.run(ctx, args...)
	}
	list, err := diff(g, "--raw", "--numstat", "-z")
	if err != nil {
		return nil, err
	}
	files, err := readList(list)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	g.limit = limit
	text, err := diff(g, "--patch", "--full-index")
	cut := errors.Is(err, errLong)
	if err != nil && !cut {
		return nil, err
	}
	if cut {
		text = text[:strings.LastIndexByte(text, '\n')+1]
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
