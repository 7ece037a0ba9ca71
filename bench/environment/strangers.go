package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// goModule has a test, and a dependency that only the private registry has.
func (b *bench) goModule(_ context.Context, c *corp) (stranger, error) {
	const module, version = "corp.example/money", "v1.2.0"
	mod := "module " + module + "\n\ngo 1.21\n"
	archive, err := zipped(map[string]string{
		module + "@" + version + "/go.mod": mod,
		module + "@" + version + "/money.go": "// Package money counts in cents.\npackage money\n\n" +
			"// Sum adds up cents.\nfunc Sum(cents ...int) (sum int) {\n" +
			"\tfor _, c := range cents {\n\t\tsum += c\n\t}\n\treturn sum\n}\n",
	})
	if err != nil {
		return stranger{}, err
	}
	at := "/go/" + module + "/@v/" + version
	c.file(at+".info", `{"Version":"`+version+`","Time":"2026-01-02T03:04:05Z"}`)
	c.file(at+".mod", mod)
	c.file(at+".zip", archive)
	sums, err := goSums(module+" "+version, mod, archive)
	return stranger{
		files: map[string]string{
			"go.mod": "module acme.example/invoice\n\ngo 1.21\n\nrequire " + module + " " + version + "\n",
			"go.sum": sums,
			"invoice.go": "package invoice\n\nimport \"" + module + "\"\n\n" +
				"// Total adds up the lines of an invoice.\n" +
				"func Total(lines ...int) int { return money.Sum(lines...) }\n",
			"invoice_test.go": "package invoice\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n" +
				"\tif got := Total(28, 1); got != 29 {\n\t\tt.Errorf(\"Total = %d\", got)\n\t}\n}\n",
		},
		test: "go test ./...", passed: regexp.MustCompile(`(?m)^ok\s+acme.example/invoice\s`),
		env:   map[string]string{"GOPROXY": "https://" + c.address() + "/go", "GONOSUMDB": "corp.example"},
		login: true,
	}, err
}

// nodeProject is tested by Jest, which has about 270 dependencies, and has a second project in a subdirectory.
func (b *bench) nodeProject(ctx context.Context, _ *corp) (stranger, error) {
	files := map[string]string{
		".gitignore":   "node_modules\n",
		"package.json": `{"name":"shop","version":"1.0.0","scripts":{"test":"jest"},"devDependencies":{"jest":"29.7.0"}}`,
		"total.js":     "exports.total = (lines) => lines.reduce((sum, cents) => sum + cents, 0);\n",
		"total.test.js": "const { total } = require('./total');\n" +
			"test('adds up', () => expect(total([28, 1])).toBe(29));\n",
		"web/package.json": `{"name":"web","version":"1.0.0","dependencies":{"express":"4.21.2"}}`,
		"web/server.js":    "exports.app = require('express')();\n",
		"web/server.test.js": "test('has a server', () => " +
			"expect(require('./server').app.listen).toBeInstanceOf(Function));\n",
	}
	registry, err := exec.CommandContext(ctx, "npm", "config", "get", "registry").Output()
	if err != nil {
		return stranger{}, fmt.Errorf("find npm's registry: %w", err)
	}
	address, err := url.Parse(strings.TrimSpace(string(registry)))
	if err != nil {
		return stranger{}, fmt.Errorf("find npm's registry: %w", err)
	}
	dependencies := 0
	for _, dir := range []string{"", "web/"} {
		lock, err := b.npmLock(ctx, files[dir+"package.json"])
		if err != nil {
			return stranger{}, err
		}
		files[dir+"package-lock.json"] = lock
		dependencies += strings.Count(lock, `"node_modules/`)
	}
	b.report.Note("dependencies of the project for Node.js", float64(dependencies), "%.0f")
	return stranger{
		files: files, test: "npm test", passed: regexp.MustCompile(`(?m)^Tests:\s+2 passed, 2 total`),
		env: map[string]string{"npm_config_registry": address.String()}, private: []string{address.Host},
	}, nil
}

// npmLock returns the lock file for a manifest.
func (b *bench) npmLock(ctx context.Context, manifest string) (string, error) {
	dir, err := os.MkdirTemp(b.dir, "npm-")
	if err != nil {
		return "", fmt.Errorf("lock dependencies: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(manifest), 0o600); err != nil {
		return "", fmt.Errorf("lock dependencies: %w", err)
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--package-lock-only", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("lock dependencies: %w (%s)", err, out)
	}
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		return "", fmt.Errorf("lock dependencies: %w", err)
	}
	return string(lock), nil
}
