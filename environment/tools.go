package environment

import (
	"maps"
	"slices"
	"strings"
)

// ToolFiles are files at the root of a repository that name versions of tools, as mise reads them.
var ToolFiles = []string{
	".go-version", ".java-version", ".mise.toml", ".node-version", ".nvmrc", ".python-version", ".ruby-version",
	".tool-versions", "mise.toml",
}

// WithMise returns d with a set-up that first lets mise install the tools that d and the files name. Set-up, runs and
// checks find them by the shims of mise, which come after the other directories of Path.
func (d Declaration) WithMise() Declaration {
	d.Setup = append([]string{"mise install --yes"}, d.Setup...)
	d.Path = append(slices.Clone(d.Path), "~/.local/share/mise/shims")
	d.Locks = slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(d.LockFiles()), ToolFiles...))))
	d.Env = maps.Clone(d.Env)
	if d.Env == nil {
		d.Env = map[string]string{}
	}
	for tool, version := range d.Tools {
		d.Env["MISE_"+strings.ToUpper(strings.ReplaceAll(tool, "-", "_"))+"_VERSION"] = version
	}
	d.Env["MISE_IDIOMATIC_VERSION_FILE_ENABLE_TOOLS"] = "go,java,node,python,ruby"
	// Nobody can be asked. What the files can run, a set-up or the agent can run too.
	d.Env["MISE_TRUSTED_CONFIG_PATHS"] = "/"
	return d
}
