package house

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// The calls between the files of a package should run one way, so that it can be read from the top down. TestCalls puts
// the files of each package into the order in which the fewest calls run back up, and holds their share to the table
// in calls.txt.

const (
	module   = "github.com/errand-fleet/errand"
	maxShare = 25 // percent of the calls between a package's files that may run back up
	table    = "calls.txt"
	refresh  = "go test ./internal/house -run 'TestCalls$' -update"
)

var update = flag.Bool("update", false, "write calls.txt: lower shares, and packages that are new or gone")

// TestCalls fails if a package's share is above the one in the table, or below it, so that the table follows.
func TestCalls(t *testing.T) {
	recorded, err := readTable()
	if err != nil {
		t.Fatal(err)
	}
	packages, err := productCode()
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, p := range packages {
		c := p.calls()
		if c.all == 0 {
			continue
		}
		measured[p.dir] = c.share()
		t.Logf("%-34s %3d %% of %3d calls", p.dir, c.share(), c.all)
		allowed := maxShare
		if was, known := recorded[p.dir]; known {
			allowed = min(was, maxShare)
		}
		if c.share() > allowed {
			t.Errorf("%s: %d %% of the calls between its files run back up, %d %% are allowed. Move one end of some of "+
				"these, or raise the number in %s and say why:\n%s", p.dir, c.share(), allowed, table, c.back)
		}
	}
	next := follow(recorded, measured)
	if maps.Equal(next, recorded) {
		return
	}
	if !*update {
		t.Errorf("%s is out of date: run %s", table, refresh)
		return
	}
	if err := writeTable(next); err != nil {
		t.Error(err)
	}
}

// follow returns the table after a measurement: shares only fall, new packages come in, those that are gone leave.
func follow(recorded, measured map[string]int) map[string]int {
	next := maps.Clone(measured)
	for dir, share := range next {
		if was, known := recorded[dir]; known {
			next[dir] = min(share, was)
		}
	}
	return next
}

func TestFollow(t *testing.T) {
	recorded := map[string]int{"falls": 9, "rises": 9, "gone": 9}
	got := follow(recorded, map[string]int{"falls": 8, "rises": 10, "new": 20})
	if want := map[string]int{"falls": 8, "rises": 9, "new": 20}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestCallsOfFiles checks which calls count, and which of them run back up.
func TestCallsOfFiles(t *testing.T) {
	fsys := fstest.MapFS{
		"p/a.go": {Data: []byte(`package p

import "example.com/far"

type A struct{ B }
type Caller interface{ Call() }

func (A) Up()                 {}
func Start(a A, c Caller)     { c.Call(); far.Do(a.Down); for _, b := range far.All() { b.Down(); Each(a.Down) } }
`)},
		"p/b.go":      {Data: []byte("package p\n\ntype B struct{}\n\nfunc (B) Down() { A{}.Up() }\nfunc Each[T any](T) {}\n")},
		"p/b_test.go": {Data: []byte("not Go")},
		"q/q.go":      {Data: []byte("package q\n\nimport \"" + module + "/p\"\n\nfunc Q() { p.A{}.Up(); R() }\n")},
		"q/r.go":      {Data: []byte("package q\n\nimport \"" + module + "/p\"\n\nfunc R() { p.A{}.Down() }\n")},
	}
	packages, err := checkAll(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range packages {
		c := p.calls()
		got = append(got, fmt.Sprint(p.dir, " ", c.all, " ", c.share(), " ", c.back))
	}
	want := []string{"p 4 25   b.go -> a.go: Up\n", "q 1 0 "}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// checkedPackage is a package whose names are resolved.
type checkedPackage struct {
	dir   string // from the module's root
	files []*ast.File
	fset  *token.FileSet
	types *types.Package
	info  types.Info
}

// productCode checks the packages of errand, once for all tests.
var productCode = sync.OnceValues(func() ([]*checkedPackage, error) { return checkAll(os.DirFS("../..")) })

// checkAll resolves the names in the product code of a module. It returns the packages by directory.
func checkAll(fsys fs.FS) ([]*checkedPackage, error) {
	build.Default.CgoEnabled = false // or the importer would run cgo for the standard library
	if build.Default.GOROOT == "" {  // a test that is built with -trimpath does not know it
		root, err := exec.Command("go", "env", "GOROOT").Output()
		if err != nil {
			return nil, fmt.Errorf("find the standard library: %w", err)
		}
		build.Default.GOROOT = strings.TrimSpace(string(root))
	}
	fset := token.NewFileSet()
	c := &checker{fset: fset, packages: map[string]*checkedPackage{}}
	c.standard = importer.ForCompiler(fset, "source", nil)
	err := eachFile(fsys, func(name string, src []byte) error {
		f, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution|parser.ParseComments)
		dir := path.Dir(name)
		p := c.packages[dir]
		if p == nil {
			p = &checkedPackage{dir: dir, fset: fset}
			p.info = types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
			c.packages[dir] = p
		}
		p.files = append(p.files, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	var checked []*checkedPackage
	for _, dir := range slices.Sorted(maps.Keys(c.packages)) {
		c.check(c.packages[dir])
		checked = append(checked, c.packages[dir])
	}
	return checked, nil
}

// checker is the importer of the packages that it checks. The standard library it reads from source. Other modules it
// takes for empty, which is quick: what is called across files is declared in the package, and so are nearly all types
// of the values that lead there.
type checker struct {
	fset     *token.FileSet
	standard types.Importer
	packages map[string]*checkedPackage // by directory
}

func (c *checker) Import(name string) (*types.Package, error) {
	if dir, ok := strings.CutPrefix(name, module+"/"); ok && c.packages[dir] != nil {
		c.check(c.packages[dir])
		return c.packages[dir].types, nil
	}
	if host, _, _ := strings.Cut(name, "/"); !strings.Contains(host, ".") {
		return c.standard.Import(name)
	}
	empty := types.NewPackage(name, path.Base(name))
	empty.MarkComplete()
	return empty, nil
}

func (c *checker) check(p *checkedPackage) {
	if p.types != nil {
		return
	}
	cfg := types.Config{Importer: c, Error: func(error) {}} // what the empty packages do not have
	p.types, _ = cfg.Check(module+"/"+p.dir, c.fset, p.files, &p.info)
}

// packageCalls are the calls between the files of a package.
type packageCalls struct {
	all, up int
	back    string // a line for each two files with calls that run back up
}

// share returns how many percent run back up, rounded.
func (c packageCalls) share() int { return int(math.Round(float64(100*c.up) / float64(max(c.all, 1)))) }

// calls counts uses of the package's functions and methods in another of its files than the one that declares them.
func (p *checkedPackage) calls() packageCalls {
	declared := map[types.Object]int{}
	for i, f := range p.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				declared[p.info.Defs[fn.Name]] = i
			}
		}
	}
	c := packageCalls{}
	n := len(p.files)
	called := make([][][]string, n) // names, by caller and by callee
	for i, f := range p.files {
		called[i] = make([][]string, n)
		ast.Inspect(f, func(node ast.Node) bool {
			id, ok := node.(*ast.Ident)
			if !ok {
				return true
			}
			if fn, ok := p.info.Uses[id].(*types.Func); ok {
				if j, ok := declared[fn.Origin()]; ok && j != i {
					called[i][j] = append(called[i][j], id.Name)
					c.all++
				}
			}
			return true
		})
	}
	order := topDown(called)
	var back bytes.Buffer
	for pos, low := range order {
		for _, high := range order[:pos] {
			names := called[low][high]
			if len(names) == 0 {
				continue
			}
			c.up += len(names)
			fmt.Fprintf(&back, "  %s -> %s: %s\n", p.name(low), p.name(high), strings.Join(names, ", "))
		}
	}
	c.back = back.String()
	return c
}

// name returns the name of a file.
func (p *checkedPackage) name(i int) string {
	return path.Base(p.fset.Position(p.files[i].Pos()).Filename)
}

// topDown returns an order of the files in which few calls run back up. It moves single files as long as that helps,
// from several first orders, and takes the best result.
func topDown(called [][][]string) []int {
	byName := make([]int, len(called))
	surplus := make([]int, len(called)) // of the calls that a file makes over those that it gets
	for i := range called {
		byName[i] = i
		for j := range called {
			surplus[i] += len(called[i][j]) - len(called[j][i])
		}
	}
	byCalls := slices.Clone(byName)
	slices.SortStableFunc(byCalls, func(a, b int) int { return surplus[b] - surplus[a] })
	reverse := slices.Clone(byName)
	slices.Reverse(reverse)
	var best []int
	fewest := math.MaxInt
	for _, order := range [][]int{byCalls, byName, reverse} {
		if n := improve(order, called); n < fewest {
			best, fewest = order, n
		}
	}
	return best
}

// improve moves files in an order while that lets fewer calls run back up, and returns how many still do.
func improve(order []int, called [][][]string) int {
	for i := 0; i < len(order); {
		to, gain := bestMove(order, i, called)
		if gain == 0 {
			i++
			continue
		}
		file := order[i]
		copy(order, slices.Insert(slices.Delete(slices.Clone(order), i, i+1), to, file))
		i = 0
	}
	up := 0
	for pos, low := range order {
		for _, high := range order[:pos] {
			up += len(called[low][high])
		}
	}
	return up
}

// bestMove returns the place for the i-th file of an order with the fewest calls back up, and how many fewer they are.
func bestMove(order []int, i int, called [][][]string) (to, gain int) {
	file := order[i]
	to = i
	for _, step := range []int{-1, 1} {
		fewer := 0
		for j := i + step; j >= 0 && j < len(order); j += step {
			fewer -= step * (len(called[file][order[j]]) - len(called[order[j]][file]))
			if fewer > gain {
				to, gain = j, fewer
			}
		}
	}
	return to, gain
}

// readTable reads the recorded shares by directory.
func readTable() (map[string]int, error) {
	src, err := os.ReadFile(table)
	if err != nil {
		return nil, err
	}
	shares := map[string]int{}
	for line := range strings.Lines(string(src)) {
		var dir string
		var share int
		if _, err := fmt.Sscanf(line, "%s %d", &dir, &share); err != nil {
			return nil, fmt.Errorf("read %s: %q: %w", table, line, err)
		}
		shares[dir] = share
	}
	return shares, nil
}

// writeTable writes shares in the order of the directories.
func writeTable(shares map[string]int) error {
	var b bytes.Buffer
	for _, dir := range slices.Sorted(maps.Keys(shares)) {
		fmt.Fprintln(&b, dir, shares[dir])
	}
	return os.WriteFile(table, b.Bytes(), 0o644)
}
