// Package environment describes what the runs of a repository need in addition to its files.
//
// A repository declares it in [File] on its base branch, and an operator under repositories in errand.yaml, which wins.
// Package environment reads and checks declarations. It runs nothing and keeps no state, so its functions may be called
// from any goroutine. It imports no other package of errand.
package environment

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// File is where a repository declares its environment, among its other settings.
const File = ".github/errand.yml"

// MaxFile is the size of the largest file that is read, in bytes. Half a file may mean something else than the whole.
const MaxFile = 64 << 10

// Bounds of a declaration.
const (
	maxVariables = 100
	maxValue     = 4096 // bytes
)

// Declaration is what a repository or an operator declares. The zero value declares nothing.
type Declaration struct {
	// Env has variables for the agent's commands and the repository's checks. They are no secrets.
	Env map[string]string `yaml:"env"`
}

// Parse reads a declaration from the content of [File] and ignores all other settings. It leaves out invalid parts and
// returns a sentence about each of them.
func Parse(data []byte) (d Declaration, wrong []string) {
	err := yaml.Unmarshal(data, &d)
	if te, ok := errors.AsType[*yaml.TypeError](err); ok {
		for _, e := range te.Errors { // "line 3: cannot unmarshal !!seq into map[string]string"
			line, _, _ := strings.Cut(e, ":")
			wrong = append(wrong, "The value at "+line+" has the wrong type.")
		}
	} else if err != nil && !errors.Is(err, io.EOF) {
		return Declaration{}, []string{"The file is not YAML."}
	}
	d, more := d.Checked()
	return d, append(wrong, more...)
}

// Checked returns d without its invalid parts, and a sentence about each of them.
func (d Declaration) Checked() (Declaration, []string) {
	var wrong []string
	kept := maps.Clone(d.Env)
	for n, name := range slices.Sorted(maps.Keys(d.Env)) {
		complaints := len(wrong)
		switch value := d.Env[name]; {
		case !variable.MatchString(name):
			wrong = append(wrong, fmt.Sprintf("env: %.100q is not the name of a variable.", name))
		case reserved.MatchString(name):
			wrong = append(wrong, "env: "+name+" is set by errand.")
		case len(value) > maxValue || strings.ContainsRune(value, 0):
			wrong = append(wrong, fmt.Sprintf("env: the value of %s has a NUL byte or more than %d bytes.", name, maxValue))
		case n >= maxVariables:
			wrong = append(wrong, fmt.Sprintf("env: %s is one of more than %d variables.", name, maxVariables))
		}
		if len(wrong) > complaints {
			delete(kept, name)
		}
	}
	return Declaration{Env: kept}, wrong
}

// Under returns d with everything that the operator declares, which wins.
func (d Declaration) Under(operator Declaration) Declaration {
	env := map[string]string{}
	maps.Copy(env, d.Env)
	maps.Copy(env, operator.Env)
	return Declaration{Env: env}
}

var variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)

// reserved matches variables that errand sets, and those with which a declaration could change the CLI itself instead
// of the commands that it runs.
var reserved = regexp.MustCompile(`^(?i:ERRAND_.*|ANTHROPIC_.*|CLAUDE.*|MCP_.*|DISABLE_.*|LD_.*|BUN_.*|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|` +
	`SSL_CERT_.*|(HTTPS?|ALL|NO)_PROXY|HOME|PATH|SHELL|TMPDIR|TERM|USER|LOGNAME|BASH_ENV|ENV)$`)
