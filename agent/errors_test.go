package agent

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/agent/internal/gateway"
)

// Every class has its row in the table and in docs/errors.md, and the two say the same.
func TestClassesAreDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(doc)) {
		if name, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ = strings.Cut(name, "`")
			rows[name] = line
		}
	}
	declared := constants(t, "Class")
	if len(declared) != len(classes) {
		t.Errorf("%d classes are declared, %d have a row", len(declared), len(classes))
	}
	for _, name := range declared {
		c := classes[Class(name)]
		for what, words := range map[string]string{
			"retry": "| " + string(c.retry) + " |", "user": "| " + c.user + " |", "remedy": "| " + c.remedy + " |",
		} {
			if len(words) < len("|  |")+1 || !strings.Contains(rows[name], words) {
				t.Errorf("%s: the %s of the row in docs/errors.md is not %q:\n%s", name, what, words, rows[name])
			}
		}
	}
	for _, name := range constants(t, "Retry") {
		if !strings.Contains(string(doc), "| `"+name+"` |") {
			t.Errorf("docs/errors.md does not say what retry %s means", name)
		}
	}
}

// constants are the values of a string type's constants in result.go.
func constants(t *testing.T, typ string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "result.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); ok && id.Name == typ {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return true
	})
	return values
}

// A check of the model blames the credential only if the refusal is not about the model.
func TestClassOfARefusedCheck(t *testing.T) {
	t.Parallel()
	for probe, want := range map[gateway.Probe]Class{
		{}:                          ClassAuth,
		{Status: 403}:               ClassAuth,
		{Status: 403, Denied: true}: ClassModel,
		{Status: 404}:               ClassModel,
		{Status: 429}:               ClassRateLimit,
		{Status: 500}:               ClassOverloaded,
	} {
		if got := checkedClass(probe); got != want {
			t.Errorf("%+v: %s", probe, got)
		}
	}
}
