package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// site is one change that can be made to a source.
type site struct {
	subject subject
	file    string // relative to the checkout
	line    int
	what    string // the change in words
	code    string // what is changed
	edits   []edit // a Go source has the switch in them, and a Lua script the change
	n       int    // its number in a trial, from 1
}

// edit replaces the bytes from one offset of a file to another.
type edit struct {
	from, to int
	with     string
}

func (s *site) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", s.file, s.line, s.what, strings.Join(strings.Fields(s.code), " "))
}

func (s *site) lua() bool { return strings.HasSuffix(s.file, ".lua") }

// find lists all changes to each package, in the order of the files.
func find(root string, subjects []subject) (all [][]*site, err error) {
	for _, sub := range subjects {
		files, err := filepath.Glob(filepath.Join(root, sub.dir, "*"))
		if err != nil {
			return nil, err
		}
		var ofPackage []*site
		for _, file := range files {
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			found, err := inFile(root, name)
			if err != nil {
				return nil, err
			}
			ofPackage = append(ofPackage, found...)
		}
		for _, s := range ofPackage {
			s.subject = sub
		}
		all = append(all, ofPackage)
	}
	return all, nil
}

func inFile(root, name string) ([]*site, error) {
	goSource := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
	if !goSource && !strings.HasSuffix(name, ".lua") {
		return nil, nil
	}
	src, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		return nil, err
	}
	if !goSource {
		return inLua(name, string(src)), nil
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	g := &goFile{name: name, src: src, fset: fset}
	ast.Inspect(f, g.visit)
	return g.found, nil
}

// goFile finds the changes of one Go source.
type goFile struct {
	name  string
	src   []byte
	fset  *token.FileSet
	found []*site
}

func (g *goFile) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		g.condition(n.Cond)
	case *ast.CaseClause:
		for _, e := range n.List {
			if b, ok := e.(*ast.BinaryExpr); ok {
				g.condition(b) // of a switch without a value
			}
		}
	case *ast.BinaryExpr:
		g.binary(n)
	case *ast.BlockStmt:
		for _, s := range n.List {
			g.statement(s)
		}
	}
	return true
}

// condition makes a condition always false, and always true. A check for an error is left out: what it guards happens
// only where a service or the machine fails.
func (g *goFile) condition(c ast.Expr) {
	if text := g.text(c); text == "err != nil" || text == "err == nil" {
		return
	}
	g.wrap(c, "is never so", "((", ") && !mutant(%d))")
	g.wrap(c, "is always so", "((", ") || mutant(%d))")
}

// binary leaves out one side of && and ||, and moves the bound of a comparison by one.
func (g *goFile) binary(b *ast.BinaryExpr) {
	switch b.Op {
	case token.LAND:
		g.wrap(b.X, "does not matter", "((", ") || mutant(%d))")
		g.wrap(b.Y, "does not matter", "((", ") || mutant(%d))")
	case token.LOR:
		g.wrap(b.X, "does not matter", "((", ") && !mutant(%d))")
		g.wrap(b.Y, "does not matter", "((", ") && !mutant(%d))")
	case token.LSS, token.GTR:
		if plain(b.X) && plain(b.Y) {
			g.wrap(b, "includes its bound", "((", ") || mutant(%d) && "+g.text(b.X)+" == "+g.text(b.Y)+")")
		}
	case token.LEQ, token.GEQ:
		if plain(b.X) && plain(b.Y) {
			g.wrap(b, "excludes its bound", "((", ") && !(mutant(%d) && "+g.text(b.X)+" == "+g.text(b.Y)+"))")
		}
	}
}

// plain reports whether an expression can be evaluated twice.
func plain(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident, *ast.BasicLit:
		return true
	case *ast.SelectorExpr:
		return plain(e.X)
	case *ast.CallExpr:
		name, ok := e.Fun.(*ast.Ident)
		return ok && name.Name == "len" && len(e.Args) == 1 && plain(e.Args[0])
	}
	return false
}

// logged are statements that only write to the log or to a counter of the monitoring.
var logged = regexp.MustCompile(`(?i)\blog(ger\(.*\))?\.|\.(Debug|Info|Warn|Error)\(|\bmetrics?\.`)

// statement leaves out a call or an assignment.
func (g *goFile) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt, *ast.IncDecStmt:
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || g.text(s.Lhs[0]) == "_" {
			return
		}
	default:
		return
	}
	if text := g.text(s); logged.MatchString(text) || strings.HasPrefix(text, "panic(") {
		return
	}
	g.wrap(s, "is left out", "if !mutant(%d) { ", " }")
}

func (g *goFile) text(n ast.Node) string {
	return string(g.src[g.fset.Position(n.Pos()).Offset:g.fset.Position(n.End()).Offset])
}

// wrap adds a change that writes something before and after a piece of code. A %d becomes the number of the change.
func (g *goFile) wrap(n ast.Node, what, before, after string) {
	from, to := g.fset.Position(n.Pos()), g.fset.Position(n.End())
	g.found = append(g.found, &site{
		file: g.name, line: from.Line, what: what, code: g.text(n),
		edits: []edit{{from.Offset, from.Offset, before}, {to.Offset, to.Offset, after}},
	})
}

// luaChanges are what is replaced in a Lua script, outside comments.
var luaChanges = []struct { //nolint:gochecknoglobals // a table
	at   *regexp.Regexp
	with string
}{
	{regexp.MustCompile(` == `), " ~= "},
	{regexp.MustCompile(` ~= `), " == "},
	{regexp.MustCompile(` < `), " <= "},
	{regexp.MustCompile(` > `), " >= "},
	{regexp.MustCompile(` <= `), " < "},
	{regexp.MustCompile(` >= `), " > "},
	{regexp.MustCompile(` and `), " or "},
	{regexp.MustCompile(` or `), " and "},
	{regexp.MustCompile(`\bif not `), "if "},
	{regexp.MustCompile(`\d{3,}`), "1"},
	{regexp.MustCompile(`'(EXPIRE|PEXPIRE|ZADD|ZREM|DEL|HDEL|SADD|SREM|LREM|LTRIM)'`), "'EXISTS'"},
}

// inLua lists the changes of a script.
func inLua(name, src string) (found []*site) {
	offset := 0
	for n, line := range strings.SplitAfter(src, "\n") {
		code, _, _ := strings.Cut(line, "--")
		for _, c := range luaChanges {
			for _, at := range c.at.FindAllStringIndex(code, -1) {
				found = append(found, &site{
					file: name, line: n + 1, what: fmt.Sprintf("%q becomes %q", code[at[0]:at[1]], c.with), code: code,
					edits: []edit{{offset + at[0], offset + at[1], c.with}},
				})
			}
		}
		offset += len(line)
	}
	return found
}

// pick takes n changes, one of each package in turn, so that no two of them overlap, and numbers them.
func pick(all [][]*site, seed uint64, n int) (picked []*site) {
	rest := make([][]*site, len(all))
	for i, sites := range all {
		r := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // a repeatable pick
		rest[i] = slices.Clone(sites)
		r.Shuffle(len(sites), func(a, b int) { rest[i][a], rest[i][b] = rest[i][b], rest[i][a] })
	}
	for len(picked) < n && slices.ContainsFunc(rest, func(sites []*site) bool { return len(sites) > 0 }) {
		for i := range rest {
			rest[i] = slices.DeleteFunc(rest[i], func(s *site) bool { return slices.ContainsFunc(picked, s.overlaps) })
			if len(rest[i]) > 0 && len(picked) < n {
				picked = append(picked, rest[i][0])
			}
		}
	}
	slices.SortFunc(picked, func(a, b *site) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.edits[0].from-b.edits[0].from)
	})
	for i, s := range picked {
		s.n = i + 1
	}
	return picked
}

func (s *site) overlaps(other *site) bool {
	return s.file == other.file && s.edits[0].from <= other.edits[len(other.edits)-1].to &&
		other.edits[0].from <= s.edits[len(s.edits)-1].to
}

// apply returns the source with the edits of some changes.
func apply(src []byte, sites []*site) []byte {
	var edits []edit
	for _, s := range sites {
		for _, e := range s.edits {
			e.with = strings.ReplaceAll(e.with, "%d", fmt.Sprint(s.n))
			edits = append(edits, e)
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, src[at:e.from]...), e.with...)
		at = e.to
	}
	return append(out, src[at:]...)
}
