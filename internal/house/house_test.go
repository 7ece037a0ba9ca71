// Package house holds the product code to the numbers that keep it readable. It has tests only.
//
// Product code is every Go file of the main module except tests, test data and the packages that exist for tests
// (fakes and helpers). bench, e2e and tools are modules of their own and are not counted.
package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"
)

// The limits. docs/architecture.md gives the reasons.
const (
	maxFuncLines  = 60    // lines in a function
	maxColumns    = 120   // columns of a line; a tab counts as four
	maxParams     = 5     // parameters of a function
	maxMainLines  = 40    // lines in a main function: programs only wire
	maxTotal      = 1_824 // thousand bytes of product code: lower this when code goes
	maxExceptions = 5     // entries in exceptions
)

// exceptions are the offenders that stay, with the reason. An exception that no longer applies fails the test.
var exceptions = map[string]string{}

// skipped are the directories that hold no product code.
var skipped = []string{
	"bench", "e2e", "tools", "node_modules", "internal/fake", "tasks/taskstest", "internal/openapi",
	"internal/redisclock", "internal/nobody", "agent/internal/agenttest", "cmd/enqueue/internal/termtest",
	"internal/await", "internal/goroutines", "internal/redisserver/redistest", "internal/testlog",
}

// TestNumbers fails for each breach that is not excepted and prints its number.
func TestNumbers(t *testing.T) {
	h, err := measure(os.DirFS("../.."))
	if err != nil || len(h.packages) < 10 {
		t.Fatalf("measured %d packages: %v", len(h.packages), err)
	}
	if len(exceptions) > maxExceptions {
		t.Errorf("%d exceptions, at most %d are allowed", len(exceptions), maxExceptions)
	}
	breaches := h.breaches()
	for _, key := range slices.Sorted(maps.Keys(breaches)) {
		if exceptions[key] == "" {
			t.Errorf("%s: %s", key, breaches[key])
		}
	}
	for key := range exceptions {
		if breaches[key] == "" {
			t.Errorf("%s is within the limits now: remove its exception", key)
		}
	}
	t.Logf("%d bytes of product code in %d packages", h.bytes, len(h.packages))
}

// TestCodeBytes checks that blanks, line breaks, comments and imports are free.
func TestCodeBytes(t *testing.T) {
	dense := "package p\n\nfunc f(a int) string { return `a  b` + \"c d\" }\n"
	airy := "// Package p has a comment.\npackage p\n\nimport \"fmt\"\n\n/* Another. */\n\n" +
		"func f(\n\ta int, // the first\n) string {\n\n\treturn `a  b` +\n\t\t\"c d\"\n}\n"
	for src, want := range map[string]int{dense: 37, airy: 38} { // the airy form has one comma more
		h := &house{packages: map[string]bool{}, found: map[string]string{}}
		if err := h.file("p/p.go", []byte(src)); err != nil || h.bytes != want {
			t.Errorf("%d bytes, want %d, %v: %s", h.bytes, want, err, src)
		}
	}
}

// TestBreaches checks that measure finds a breach of every limit.
func TestBreaches(t *testing.T) {
	var src strings.Builder
	src.WriteString("package p\n\ntype T[K any] struct{}\n\nfunc init() {}\nfunc (*T[K]) wide(a, b, c int, d string, e, f bool) {}\n")
	wide := strings.Repeat("x", maxColumns)
	src.WriteString("// Raw strings, tables in comments and exceptions to linters may be wide.\n//\t" + wide + "\n" +
		"const raw = `" + wide + "`\n\nvar _ = raw //nolint:" + wide + "\n// " + wide + "\n")
	src.WriteString("func long() {\n" + strings.Repeat("\n", maxFuncLines) + "}\n")
	other := &fstest.MapFile{Data: []byte("not Go")}
	fsys := fstest.MapFS{"a/p/p_test.go": other, "bench/b.go": other, "a/testdata/t.go": other}
	fsys["a/p/p.go"] = &fstest.MapFile{Data: []byte(src.String())}
	h, err := measure(fsys)
	if err != nil {
		t.Fatal(err)
	}
	got := slices.Sorted(maps.Keys(h.breaches()))
	want := []string{"a/p.T.wide", "a/p.init", "a/p.long", "a/p/p.go:12"}
	if !slices.Equal(got, want) {
		t.Errorf("breaches %q, want %q", got, want)
	}
}

// house is what measure found.
type house struct {
	bytes    int               // of code
	packages map[string]bool   // by directory
	found    map[string]string // breaches, by what breaks a limit
}

// measure parses the product code of a module.
func measure(fsys fs.FS) (*house, error) {
	h := &house{packages: map[string]bool{}, found: map[string]string{}}
	return h, eachFile(fsys, h.file)
}

// eachFile calls f for each file of product code.
func eachFile(fsys fs.FS, f func(name string, src []byte) error) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch hidden := len(name) > 1 && strings.HasPrefix(path.Base(name), "."); {
		case err != nil:
			return err
		case d.IsDir() && (hidden || path.Base(name) == "testdata" || slices.Contains(skipped, name)):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		return f(name, src)
	})
}

// afterImports returns the part of a file behind its package clause and its imports, which only move when files do.
func afterImports(fset *token.FileSet, f *ast.File, src []byte) []byte {
	end := f.Name.End()
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.IMPORT {
			end = g.End()
		}
	}
	return src[fset.Position(end).Offset:]
}

// codeBytes returns the bytes of code without blanks, line breaks and comments.
func codeBytes(src []byte) int {
	n := 0
	var s scanner.Scanner
	fset := token.NewFileSet()
	s.Init(fset.AddFile("", fset.Base(), len(src)), src, nil, 0)
	for {
		_, tok, lit := s.Scan()
		switch {
		case tok == token.EOF:
			return n
		case lit == "": // an operator
			n += len(tok.String())
		case lit != "\n": // the scanner's semicolon at the end of a line
			n += len(lit)
		}
	}
}

// file adds one file.
func (h *house) file(name string, src []byte) error {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	dir := path.Dir(name)
	h.bytes += codeBytes(afterImports(fset, f, src))
	h.packages[dir] = true
	h.columns(fset, f, src)
	for _, decl := range f.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		key := dir + "." + fn.Name.Name
		if fn.Recv != nil {
			key = dir + "." + receiver(fn.Recv.List[0].Type) + "." + fn.Name.Name
		}
		length := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
		limit := maxFuncLines
		if fn.Recv == nil && fn.Name.Name == "main" {
			limit = maxMainLines
		}
		h.limit(key, "lines", length, limit)
		h.limit(key, "parameters", fn.Type.Params.NumFields(), maxParams)
		if fn.Recv == nil && fn.Name.Name == "init" {
			h.found[key] = "an init function; construct it in cmd instead"
		}
	}
	return nil
}

// columns records the lines that are too wide. Raw strings, which would change with a line break, tables in comments
// and lines with an exception to a linter, which has to be on the line, may be.
func (h *house) columns(fset *token.FileSet, f *ast.File, src []byte) {
	raw := map[int]bool{} // lines
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(s.Value, "`") {
			for l := fset.Position(s.Pos()).Line; l <= fset.Position(s.End()).Line; l++ {
				raw[l] = true
			}
		}
		return true
	})
	for n, line := range strings.Split(string(src), "\n") {
		free := raw[n+1] || strings.HasPrefix(line, "//\t") || strings.Contains(line, "//nolint:")
		if width := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")); !free {
			h.limit(fmt.Sprintf("%s:%d", fset.Position(f.Pos()).Filename, n+1), "columns", width, maxColumns)
		}
	}
}

// limit records a breach if n is over the limit.
func (h *house) limit(key, unit string, n, limit int) {
	if n > limit {
		h.found[key] = strings.TrimPrefix(fmt.Sprintf("%s, %d %s, at most %d", h.found[key], n, unit, limit), ", ")
	}
}

// breaches returns every breach by what breaks the limit.
func (h *house) breaches() map[string]string {
	h.limit("total", "thousand bytes", h.bytes/1000, maxTotal)
	return h.found
}

// receiver returns the name of a method's type without pointer and type parameters.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr: // one type parameter
		return receiver(t.X)
	case *ast.IndexListExpr: // several
		return receiver(t.X)
	}
	return t.(*ast.Ident).Name
}
