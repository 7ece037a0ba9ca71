package house

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/types"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestDocLinks fails if a comment has a link to a name that does not exist, such as [store.Gone]. After a move, a reader
// would look for the name in the wrong package.
func TestDocLinks(t *testing.T) {
	packages, err := productCode()
	if err != nil {
		t.Fatal(err)
	}
	for _, dead := range deadLinks(packages) {
		t.Error(dead)
	}
}

func TestDeadLinks(t *testing.T) {
	packages, err := checkAll(fstest.MapFS{
		"p/p.go": {Data: []byte(`package p

import (
	"example.com/far"
	"` + module + `/q"
)

// A is like [q.Q], [q.Q.Do], [*q.Q], [r.R], [B.Do], [q], a [list] and [far.Things].
//
//   - It is not like [q.Gone] and [*q.Q.Gone].
//
// It is not like [r.Gone], [Gone] and [A.Do].
type A struct {
	Field q.Q // not of [q.Lost]
}

type B struct{ q.Q }
`)},
		"q/q.go": {Data: []byte("package q\n\ntype Q struct{}\n\nfunc (Q) Do() {}\n")},
		"r/r.go": {Data: []byte("package r\n\ntype R struct{}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := deadLinks(packages)
	want := []string{
		"p/p.go:8: [q.Gone]", "p/p.go:8: [q.Q.Gone]", "p/p.go:8: [r.Gone]", "p/p.go:8: [Gone]", "p/p.go:8: [A.Do]",
		"p/p.go:14: [q.Lost]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// deadLinks returns the links in comments that name nothing, each with the line where its comment begins.
func deadLinks(packages []*checkedPackage) (dead []string) {
	byName := map[string][]*types.Package{}
	for _, p := range packages {
		byName[p.types.Name()] = append(byName[p.types.Name()], p.types)
	}
	for _, p := range packages {
		targets := func(name string) []*types.Package {
			if name == "" {
				return []*types.Package{p.types}
			}
			for _, imported := range p.types.Imports() {
				if imported.Name() == name {
					return []*types.Package{imported}
				}
			}
			return byName[name] // a link to what the package does not import
		}
		links := comment.Parser{
			LookupPackage: func(name string) (string, bool) { return name, targets(name) != nil },
			LookupSym:     func(string, string) bool { return true }, // or those that do not exist would be no links
		}
		for _, group := range p.comments() {
			for _, link := range linksIn(links.Parse(group.Text()).Content) {
				if to := targets(link.ImportPath); to != nil && !slices.ContainsFunc(to, link.in) {
					at := p.fset.Position(group.Pos())
					dead = append(dead, fmt.Sprintf("%s:%d: [%s]", at.Filename, at.Line, link))
				}
			}
		}
	}
	return dead
}

// comments returns all comments of a package.
func (p *checkedPackage) comments() (list []*ast.CommentGroup) {
	for _, f := range p.files {
		list = append(list, f.Comments...)
	}
	return list
}

// docLink is a link of a comment, whose ImportPath is only the name of the package.
type docLink comment.DocLink

func (l docLink) String() string {
	parts := []string{l.ImportPath, l.Recv, l.Name}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ".")
}

// in reports whether a package has what the link names. Packages of other modules are taken for empty and have all. A
// link in capitals is text in brackets, such as [WIP].
func (l docLink) in(p *types.Package) bool {
	switch {
	case l.Name == "" || len(p.Scope().Names()) == 0 || l.ImportPath+l.Name == strings.ToUpper(l.Name):
		return true
	case l.Recv == "":
		return p.Scope().Lookup(l.Name) != nil
	}
	recv := p.Scope().Lookup(l.Recv)
	if recv == nil {
		return false
	}
	found, _, _ := types.LookupFieldOrMethod(recv.Type(), true, p, l.Name)
	return found != nil
}

// linksIn returns the links of a comment.
func linksIn(blocks []comment.Block) (links []docLink) {
	for _, b := range blocks {
		var text []comment.Text
		switch b := b.(type) {
		case *comment.Paragraph:
			text = b.Text
		case *comment.Heading:
			text = b.Text
		case *comment.List:
			for _, item := range b.Items {
				links = append(links, linksIn(item.Content)...)
			}
		}
		for _, t := range text {
			if link, ok := t.(*comment.DocLink); ok {
				links = append(links, docLink(*link))
			}
		}
	}
	return links
}
