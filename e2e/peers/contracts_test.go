package peers

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	forge "github.com/errand-fleet/errand/forge/github"
	"github.com/errand-fleet/errand/internal/fake/contract"
	"github.com/errand-fleet/errand/internal/fake/githubfake"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
)

// root is the checkout.
var root = filepath.Join("..", "..")

// otherCalls are operations that are called without go-github or slack-go's method of that name, with the file.
var otherCalls = map[string]string{
	"POST /app/installations/{id}/access_tokens": "forge/github/client.go", // by ghinstallation
	"GET /app":                           "forge/github/diagnose.go", // with permissions that go-github lacks
	"GET /app/installations":             "forge/github/diagnose.go",
	"POST /graphql":                      "forge/github/forge.go",
	"GET /repos/{o}/{r}/issues/comments": "tasks/github/thread/remark.go", // without a number
	"GET /repos/{o}/{r}/pulls/comments":  "tasks/github/thread/remark.go",
	"auth.test":                          "tasks/slack/access.go", // slack-go does not name the method
	"POST /repos/{o}/{r}/pulls/{n}/comments/{id}/replies": "tasks/github/thread/post.go",
	"POST /repos/{o}/{r}/issues/{n}/labels":               "forge/github/publish.go",
	// GET /user of go-github's Users.Get, with a name
	"GET /users/{u}":        "forge/github/forge.go",
	"apps.connections.open": "tasks/slack/listen.go", // by slack-go's socketmode
	// outside of tasks/slack, where methods are looked for
	"apps.manifest.create":         "cmd/enqueue/guide_slack.go",
	"conversations.join":           "cmd/enqueue/guide_slack.go",
	"conversations.list":           "cmd/enqueue/guide_slack.go",
	"files.getUploadURLExternal":   "tasks/slack/client.go", // by slack-go's UploadFileContext
	"files.completeUploadExternal": "tasks/slack/client.go",
}

// limits are the rate classes of Slack, as its reference of methods names them, with whether the client repeats a call.
var limits = map[string]struct{ class, repeated string }{
	"apps.connections.open":        {"tier 1", "by slack-go, when a connection ends"},
	"auth.test":                    {"special", "no"},
	"bots.info":                    {"tier 3", "no"},
	"users.info":                   {"tier 4", "no"},
	"apps.manifest.create":         {"tier 1", "no"},
	"conversations.info":           {"tier 3", "no"},
	"conversations.join":           {"tier 3", "no"},
	"conversations.list":           {"tier 2", "no"},
	"conversations.history":        {"tier 3", "no"},
	"conversations.replies":        {"tier 3", "no"},
	"chat.postMessage":             {"1 a second in a channel", "after a 429, for a limited time"},
	"chat.postEphemeral":           {"tier 4", "no"},
	"chat.update":                  {"tier 3", "the last edit, after a 429"},
	"chat.delete":                  {"tier 3", "no"},
	"chat.getPermalink":            {"special", "no"},
	"reactions.add":                {"tier 3", "no"},
	"reactions.remove":             {"tier 2", "no"},
	"assistant.threads.setStatus":  {"special", "no"},
	"views.open":                   {"tier 4", "no"},
	"views.publish":                {"tier 4", "no"},
	"files.info":                   {"tier 4", "no"},
	"files.getUploadURLExternal":   {"tier 4", "after a 429, for a limited time"},
	"files.completeUploadExternal": {"tier 4", "after a 429, for a limited time"},
}

// ungranted are operations that no permission of an App allows or needs, with the reason.
var ungranted = map[string]string{
	"GET /installation/repositories":         "none: the token of an installation",
	"POST /app-manifests/{code}/conversions": "none: the code of GitHub's page",
	"GET /user/emails":                       "none: a person who logs in",
	"GET /user/orgs":                         "none: a person who logs in",
	"GET /user/teams":                        "none: a person who logs in",
	// GitHub's reference; @octokit/app-permissions lacks it
	"GET /repos/{o}/{r}/collaborators/{u}/permission":     "metadata: read",
	"POST /repos/{o}/{r}/pulls/{n}/comments/{id}/replies": "pull_requests: write",
	"POST /graphql":                      "pull_requests: write, issues: write",
	"POST /repos/{o}/{r}/statuses/{sha}": "none: with a personal token only; an App makes check runs",
	"GET /user":                          "none: a personal token, or a person who logs in",
}

// aliases are what errand calls where go-github's method serves two operations.
var aliases = map[string]string{
	"GET /users/{username}":      "GET /user", // Users.Get, Organizations.List and Apps.Get without a name
	"GET /users/{username}/orgs": "GET /user/orgs",
	"GET /apps/{app_slug}":       "GET /app",
}

// docs/contracts.md lists every operation that errand calls: none is without a schema, a permission that the App asks
// for, and a rate class.
func TestContractsAreDocumented(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	page.WriteString(contractsHead)
	sites := callSites(t)
	page.WriteString("## GitHub\n\n| operation | schema | called in | permission | rate class |\n|---|---|---|---|---|\n")
	known := githubfake.Contract().Operations
	for _, name := range slices.Sorted(maps.Keys(sites)) {
		if !strings.Contains(name, " ") {
			continue
		}
		op, there := known[name]
		if !there {
			t.Errorf("%s, called in %s, is not in the description of the fake", name, sites[name])
		}
		permission, err := permissionFor(name, op)
		if err != nil {
			t.Error(err)
		}
		class := "primary"
		if !strings.HasPrefix(name, "GET") {
			class = "primary, content creation"
		}
		id := op.ID
		if id == "" {
			id = "schema.graphql"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s | %s |\n", name, id, strings.Join(sites[name], ", "), permission, class)
	}
	page.WriteString("\n## Slack\n\n| method | called in | rate class | repeated |\n|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(sites)) {
		if strings.Contains(name, " ") {
			continue
		}
		if !slackfake.Contract().Has(name + " argument") {
			t.Errorf("%s, called in %s, is not in slack.ts", name, sites[name])
		}
		if limits[name].class == "" {
			t.Errorf("%s has no rate class", name)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", name, strings.Join(sites[name], ", "), limits[name].class,
			limits[name].repeated)
	}
	compareGolden(t, filepath.Join(root, "docs", "contracts.md"), page.String())
}

const contractsHead = `# Contracts

Every operation of GitHub and Slack that errand calls. ` + "`make peers`" +
	` fails when this page is out of date; ` + "`make peers ARGS='-run Contracts -update'`" + `
writes it again. [testing.md](testing.md) explains how the calls are checked.

GitHub: *schema* is the operationId of GitHub's description. *Permission* is the one of the App's manifest that allows the call. All calls count
against the primary limit of the installation or token; those that write also against the secondary limit for content. The client
repeats no call: a rate limit makes the task wait until it ends, and what was written is found again by its hidden mark.

`

// permissionFor names the permission of the App's manifest that allows an operation.
func permissionFor(name string, op contract.Operation) (string, error) {
	if said := ungranted[name]; said != "" {
		return said, nil
	}
	if strings.HasPrefix(name, "GET /app") || strings.HasPrefix(name, "POST /app") ||
		strings.HasSuffix(name, "/installation") {
		return "the App's own key", nil
	}
	granted := forge.Permissions()
	for _, permission := range slices.Sorted(maps.Keys(op.Permission)) {
		if have := granted[permission]; have == "write" || have == op.Permission[permission] {
			return permission + ": " + op.Permission[permission], nil
		}
	}
	return "", fmt.Errorf("%s needs one of %v, and the App's manifest asks for %v", name, op.Permission, granted)
}

// callSites finds where product code calls go-github and slack-go, by operation as the fakes name it.
func callSites(t *testing.T) map[string][]string {
	t.Helper()
	sites := map[string][]string{}
	for name, file := range otherCalls {
		sites[name] = []string{file}
	}
	routes := map[string]string{}
	for name := range githubfake.Contract().Operations {
		routes[shape(name)] = name
	}
	github, slack := methods(t, "github.com/google/go-github/v60", "github", `//meta:operation (\S+ \S+)`), methods(t,
		"github.com/slack-go/slack", "", `(?:api\.slack\.com|docs\.slack\.dev/reference)/methods/([\w.]+)`)
	for _, dir := range []string{"forge/github", "tasks/github", "tasks/slack", "web", "cmd"} {
		eachCall(t, filepath.Join(root, dir), func(file, service, method string) {
			var names []string
			if operation := github[service+"Service."+method]; operation != "" {
				if alias := aliases[operation]; alias != "" {
					operation = alias
				}
				name := routes[shape(operation)]
				if name == "" {
					t.Errorf("%s calls %s, for which the fake has no route", file, operation)
				}
				names = append(names, name)
			}
			if dir == "tasks/slack" && slack["Client."+method] != "" {
				names = append(names, slack["Client."+method])
			}
			for _, name := range names {
				if !slices.Contains(sites[name], file) {
					sites[name] = append(sites[name], file)
					slices.Sort(sites[name])
				}
			}
		})
	}
	return sites
}

// methods reads from the comments of a module which operation each method calls, by receiver and name.
func methods(t *testing.T, module, dir, pattern string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("find %s: %v", module, err)
	}
	says := regexp.MustCompile(pattern)
	found := map[string]string{}
	files, _ := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), dir, "*.go"))
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || fn.Doc == nil {
				continue
			}
			star, ok := fn.Recv.List[0].Type.(*ast.StarExpr)
			if !ok {
				continue
			}
			for _, line := range fn.Doc.List {
				if m := says.FindStringSubmatch(line.Text); m != nil {
					found[star.X.(*ast.Ident).Name+"."+fn.Name.Name] = m[1]
				}
			}
		}
	}
	if len(found) < 50 {
		t.Fatalf("%s: %d methods", module, len(found))
	}
	return found
}

// eachCall visits what looks like x.Service.Method in product code, by file relative to the checkout.
func eachCall(t *testing.T, dir string, visit func(file, service, method string)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		file, _ := filepath.Rel(root, path)
		ast.Inspect(f, func(n ast.Node) bool {
			if method, ok := n.(*ast.SelectorExpr); ok {
				if service, ok := method.X.(*ast.SelectorExpr); ok {
					visit(file, service.Sel.Name, method.Sel.Name)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// compareGolden compares a text with a file, which -update rewrites.
func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
